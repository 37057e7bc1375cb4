#!/usr/bin/env bash
# controls.sh FOLDER COMPILER [FLAGS...]: all programs of this folder without their mistakes, as one object.
set -euo pipefail
here=$(realpath "$(dirname "$0")") folder=$1
shift
mkdir -p "$folder"
{
  for header in $(sed -n 's/^#include <\(.*\)>$/\1/p' "$here"/*.cpp | sort -u); do echo "#include <$header>"; done
  echo '#define CFP_CONTROL'
  for file in "$here"/*.cpp; do
    name=$(basename "$file" .cpp)
    printf 'namespace %s {\n#line 1 "%s"\n' "$name" "$file"
    sed 's/^int main() {}$//' "$file"
    echo '}'
  done
  echo 'int main() {}'
} > "$folder/controls.cpp"
"$@" -c -o "$folder/controls.o" "$folder/controls.cpp"
