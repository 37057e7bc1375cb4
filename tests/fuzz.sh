#!/usr/bin/env bash
# fuzz.sh SECONDS [READER]: everything that reads text or files under libFuzzer, SECONDS in all, or for one reader.
# Prints how often each read; exit code 1 where an input ends otherwise than in a value or a sentence (it is kept), 2
# without libFuzzer. CFP_FUZZ_FOLDER: where it builds (build/fuzz); CFP_FUZZ_OPTIMISE=-O0: for few seconds.
# `CFP_FUZZ=READER build/fuzz/files INPUT` (or texts) reads one again.
set -euo pipefail
export ASAN_OPTIONS=${ASAN_OPTIONS:-malloc_context_size=0:quarantine_size_mb=4}  # twice as many inputs per second
cd "$(dirname "$0")/.."
seconds=${1:?"bash tests/fuzz.sh SECONDS [READER]"}
readers=(${2:-rule dimensions placement mesh config model machine plan table costs state schedule checkpoint index tokens onnx hlo})
folder=${CFP_FUZZ_FOLDER:-build/fuzz}
mkdir -p "$folder/seeds" "$folder/corpus" "$folder/found"

clang=$(command -v clang++ || command -v clang++-19 || command -v clang++-14 || true)
flags=(-std=c++20 "${CFP_FUZZ_OPTIMISE:--O1}" -g1 -Iinclude -fsanitize=fuzzer,address,undefined,float-cast-overflow -fno-sanitize-recover=all)
echo 'extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }' > "$folder/none.cpp"
if [ -z "$clang" ] || ! "$clang" "${flags[@]}" "$folder/none.cpp" -o "$folder/none" 2> "$folder/none.log"; then
  echo "libFuzzer is missing: apt-get install clang libclang-rt-dev (or the libclang-rt-VERSION-dev of your clang)" >&2
  exit 2
fi
for fuzzer in texts files; do
  if [ ! -e "$folder/$fuzzer" ] || [ -n "$(find include tests/fuzz tests/random_costs.hpp -newer "$folder/$fuzzer" -type f | head -1)" ]; then
    "$clang" "${flags[@]}" "tests/fuzz/$fuzzer.cpp" -o "$folder/$fuzzer"
  fi
done

# What the tree carries is where it starts: configurations, machines, rules of operators, what our writers write.
CFP_FUZZ_SEEDS="$folder/seeds" "$folder/files"
one_each() {  # one_each READER: a file per line of stdin
  mkdir -p "$folder/seeds/$1"
  awk -v to="$folder/seeds/$1/" '{ gsub(/\\n/, "\n"); printf "%s", $0 > (to NR); close(to NR) }'
}
words() { grep -rhoE "$1" include docs examples tests | sort -u; }
words 'op<"[^"]*"' | cut -d'"' -f2 | one_each rule
words 'dims<"[^>]*>' | cut -d'<' -f2 | tr -d '">' | sed 's/, */\\n/g' | one_each dimensions
words 'dims<"[^>]*>' | cut -d'<' -f2 | tr -d '">' | sed 's/, */,/g; s/^\(([^ ]* \)\?\([a-z_]*\).*/data=2,model=4\\n&\\n\2:data partial:model/' | one_each placement
words '[a-z]+=[0-9]+(,[a-z]+=[0-9]+)*' | one_each mesh
seeds_of() {
  case $1 in
    config | model) echo examples/models ;;
    machine) echo examples/machines ;;
    *) echo "$folder/seeds/$1" ;;
  esac
}

# Shapes are computed while a graph is read: as much at once as its reader lets in.
most_at_once() {
  case $1 in
    onnx | hlo) echo 64 ;;
    *) echo 16 ;;
  esac
}

fuzzer_of() {
  case $1 in
    rule | dimensions | placement | mesh) echo "$folder/texts" ;;
    *) echo "$folder/files" ;;
  esac
}

failed=0 all=0
printf '%-12s %12s %8s %8s\n' reader executions seconds edges
for reader in "${readers[@]}"; do
  corpus=$folder/corpus/$reader found=$folder/found/$reader log=$folder/$reader.log
  mkdir -p "$corpus" "$found"
  grep -arhoE '"[a-z_0-9]+"' "$(seeds_of "$reader")" | sort -u | sed 's/"/\\"/g; s/.*/"&"/' > "$folder/$reader.dict" || true
  dictionary=()
  [ -s "$folder/$reader.dict" ] && dictionary=(-dict="$folder/$reader.dict")
  code=0
  CFP_FUZZ=$reader "$(fuzzer_of "$reader")" "$corpus" "$(seeds_of "$reader")" "${dictionary[@]}" -artifact_prefix="$found/" \
    -max_total_time=$(((seconds + ${#readers[@]} - 1) / ${#readers[@]})) -timeout=10 -rss_limit_mb=1024 -malloc_limit_mb="$(most_at_once "$reader")" -max_len=4096 \
    -print_final_stats=1 > "$log" 2>&1 || code=$?
  runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
  all=$((all + ${runs:-0}))
  printf '%-12s %12s %8s %8s\n' "$reader" "${runs:-0}" "$(sed -n 's/^Done.* in \([0-9]*\) second.*/\1/p' "$log")" \
    "$(sed -n 's/.* cov: \([0-9]*\) .*/\1/p' "$log" | tail -1)"
  if [ $code -ne 0 ]; then
    failed=1
    grep -E 'must hold|runtime error|ERROR: |SUMMARY|Test unit written' "$log" || tail -5 "$log"
  fi
done
printf '%-12s %12s\n' all "$all"
exit $failed
