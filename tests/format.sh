#!/usr/bin/env bash
# format.sh [--mend]: says which files are not written as .clang-format says, or where a line is too long; --mend rewrites them.
# By clang-format 14, which Debian 12 and Ubuntu 24.04 have; other versions format otherwise.
set -euo pipefail
cd "$(dirname "$0")/.."
command -v clang-format-14 >/dev/null || { echo "clang-format-14 is missing: install it" >&2; exit 77; }
# One mistake per file, each with the words the compiler says: those lines are long.
mapfile -t files < <(find include examples bench tests -regex '.*\.\(hpp\|cpp\|cu\|cuh\)' -not -path 'tests/fail/*' | sort)
[ "${1:-}" = --mend ] && clang-format-14 -i "${files[@]}"
failed=0
wrong=$(clang-format-14 --dry-run -Werror "${files[@]}" 2>&1 | grep -E 'error|warning' | cut -d: -f1 | uniq || true)
[ -z "$wrong" ] || { echo "$wrong"; failed=1; }
awk 'length > 120 { print FILENAME ":" FNR ": " length " columns, at most 120"; bad = 1 } END { exit bad }' "${files[@]}" || failed=1
awk -f tests/lengths.awk $(printf '%s\n' "${files[@]}" | grep -E '^(include|examples)/') || failed=1
exit $failed
