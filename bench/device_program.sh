#!/usr/bin/env bash
# device_program.sh CFP FILE [OPTION...]: the program cfp as people run it where there is one GPU: alone, and by two processes that share it.
# Each command must end well within two minutes. What was run and what it said goes into FILE. OPTIONs: which model, and how large.
set -uo pipefail
cfp=$1 file=$2
shift 2
cd "$(dirname "$0")/.."
failed=0
mkdir -p "$(dirname "$file")"
: > "$file.part"
said() {  # said WORDS COMMAND...: ends with 0, and says these
  local words=$1 got=0 began=$SECONDS
  shift
  echo "\$ $*" >> "$file.part"
  timeout 120 "$@" > "$file.said" 2>&1 || got=$?
  tr '\r' '\n' < "$file.said" | grep -v '^[[:space:]]*$' >> "$file.part"
  echo "($((SECONDS - began)) s, exit code $got)" >> "$file.part"
  if [ "$got" -ne 0 ] || ! grep -q -- "$words" "$file.said"; then
    echo "ended with $got, expected 0 and '$words': $*"
    tail -n 20 "$file.said"
    failed=1
  fi
}
[ $# -gt 0 ] || set -- --model examples/models/gpt2.json --vocabulary 1024 --layers 2 --batch 4 --seq 128 --steps 5 --compare 5
common=(--backend cuda --type bfloat16 --text LICENSE "$@")
said "verified over" "$cfp" run --mesh gpu=1 "${common[@]}"
said "verified over" bash tests/launch.sh 2 "$cfp" run --mesh data=2 --share-gpus "${common[@]}"
rm -f "$file.said"
mv "$file.part" "$file"
echo "written to $file"
exit $failed
