#!/usr/bin/env bash
# catalogue.sh COMPILER FOLDER: docs/7_catalogue.md is what docs/catalogue.cpp prints, and no public operator is missing from it.
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p "$2"
"$1" -std=c++20 -O0 -Wall -Wextra -Wconversion -Wshadow -Werror -Iinclude docs/catalogue.cpp -o "$2/catalogue"
"$2/catalogue" > "$2/page.md"
if ! cmp -s "$2/page.md" docs/7_catalogue.md; then
  echo "docs/7_catalogue.md is not what docs/catalogue.cpp prints; write it anew: $2/catalogue > docs/7_catalogue.md"
  diff "$2/page.md" docs/7_catalogue.md | head -20
  exit 1
fi
missing=0
for op in $(grep -rhoE '^inline constexpr struct [a-z_0-9]+_t' include/cfp/op | sed 's/.* //; s/_t$//'); do
  grep -qx "### $op" docs/7_catalogue.md || { echo "operator $op is not in docs/7_catalogue.md"; missing=1; }
done
exit $missing
