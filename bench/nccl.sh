#!/usr/bin/env bash
# nccl.sh PROGRAM FILE: NCCL between 2 to 4 processes, on however many GPUs there are: every collective on a line and a mesh against
# that of threads, sums repeated by a graph; a rank that throws, that throws once its steps are a graph, that does not come, that is killed.
# Each must end as it should, within a minute and a half. Writes what each took into FILE. Exit code 77 without a GPU.
set -uo pipefail
program=$1 file=$2
cd "$(dirname "$0")/.."
failed=0 rows=()
check() {  # check PROCESSES CASE CODE WORDS
  local began=$SECONDS got=0 said right=true
  said=$(timeout 90 bash tests/launch.sh "$1" "$program" "$2" 2>&1) || got=$?
  [ "$got" -ne 77 ] || exit 77
  if [ "$got" -ne "$3" ] || ! grep -q -- "$4" <<< "$said"; then
    right=false failed=1
    echo "$2 of $1 processes ended with $got, expected $3 and '$4' in:"$'\n'"$said"
  fi
  rows+=("{\"case\": \"$2\", \"processes\": $1, \"right\": $right, \"seconds\": $((SECONDS - began))}")
  echo "$2 of $1 processes: $([ $right = true ] && echo as it should || echo NOT as it should), $((SECONDS - began)) s"
}
check 2 line 0 "as threads"
check 2 graph 0 "as threads"
check 3 throws 2 "rank 1 failed: out of luck"
check 2 captured 2 "rank 1 failed: out of luck"
check 2 killed 2 "rank 1 ended without a word"
check 2 missing 2 "did not end within 5000 ms"
check 3 line 0 "as threads"
check 4 mesh 0 "as threads"
mkdir -p "$(dirname "$file")"
{ printf '[\n '; printf '%s' "${rows[0]}"; printf ',\n %s' "${rows[@]:1}"; printf '\n]\n'; } > "$file.part" && mv "$file.part" "$file"
exit $failed
