#!/usr/bin/env bash
# Bad input: exit code 2, one sentence on stderr that names the culprit, no output file touched.
set -u
gpt=$1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
failed=0
tiny=$(cd "$(dirname "$0")" && pwd)/tiny_gpt.json

expect() {  # expect WORDS ARGUMENTS...
  local words=$1
  shift
  echo untouched > "$dir/summary.json"
  "$gpt" --steps 1 --compare 0 --summary "$dir/summary.json" "$@" > "$dir/out" 2> "$dir/err"
  local code=$?
  if [ $code -ne 2 ] || ! grep -qF -- "$words" "$dir/err" || [ "$(wc -l < "$dir/err")" -ne 1 ] ||
     [ "$(cat "$dir/summary.json")" != untouched ]; then
    echo "FAILED: $* -> exit code $code, expected 2 and '$words', got:"
    cat "$dir/err"
    failed=1
  fi
}
with() {  # with KEY VALUE: the tiny model with one key changed
  sed "s/\"$1\": [^,]*/\"$1\": $2/" "$tiny" > "$dir/model.json"
}

small=(--batch 4 --seq 16)
expect "cannot be read" --model "$dir/none.json"
head -c 40 "$tiny" > "$dir/model.json"; expect "is no JSON" --model "$dir/model.json"
with model_type '"bert"'; expect "key 'model_type' must be \"gpt2\", is \"bert\"" --model "$dir/model.json"
with n_head 5; expect "key 'n_head' must divide n_embd 64, is 5" --model "$dir/model.json"
with n_embd '"wide"'; expect "key 'n_embd' must be a whole number, is \"wide\"" --model "$dir/model.json"
grep -v n_layer "$tiny" > "$dir/model.json"; expect "key 'n_layer' is missing" --model "$dir/model.json"
expect "divides nothing" --model "$tiny" --batch 1 --seq 15 --mesh data=7
expect "axis 'data' must be a number from 1 to 999, is 'x'" --model "$tiny" "${small[@]}" --mesh data=x
expect "stands twice" --model "$tiny" "${small[@]}" --mesh data=2,data=2
expect "write axes as name=size" --model "$tiny" "${small[@]}" --mesh 2
expect "exceeds n_positions 64" --model "$tiny" --batch 4 --seq 65
expect "no plan fits; the least any plan needs is" --model "$tiny" "${small[@]}" --memory 1000
expect "--text $dir/none: cannot be read" --model "$tiny" "${small[@]}" --text "$dir/none"
expect "--plan $dir/none: cannot be read" --model "$tiny" "${small[@]}" --plan "$dir/none"
echo '{"model": 1' > "$dir/plan"; expect "--plan $dir/plan:" --model "$tiny" "${small[@]}" --plan "$dir/plan"
exit $failed
