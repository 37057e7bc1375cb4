# Machines with prices: the front of time and money over all their parts, and the seconds it took: of one type of GPU, so
# many or any number, and of several. Sourced by run.sh. (Astra, arXiv 2502.13480, says 1.27 s and 81 s.)
. tests/packages.sh
install_packages
quietly build/configure.log cmake -S . -B build -G Ninja
quietly build/build.log cmake --build build --target cfp
folder=build/bench/fleets
mkdir -p "$folder"
echo '{"name": "one type", "currency": "USD", "pools": [{"machine": "h100-8x8-400g", "price": 3.0}]}' > "$folder/one.json"
cases=''
asked() { # NAME OPTIONS...: the seconds of one question
  local name=$1 begin seconds
  shift
  begin=$(date +%s.%N)
  build/examples/cfp plan "$@" --summary "$folder/answer.json" > "$folder/answer.txt"
  seconds=$(awk -v a="$begin" -v b="$(date +%s.%N)" 'BEGIN { printf "%.2f", b - a }')
  printf '%s: %s s\n' "$name" "$seconds"
  sed -n '/USD\/h/,/^\*/p' "$folder/answer.txt"
  cases+="${cases:+,}{\"question\": \"$name\", \"seconds\": $seconds, \"answer\": $(cat "$folder/answer.json")}"
}
for model in gpt2-xl llama-3-8b; do
  asked "$model on 64 of one type" --machine h100-8x8-400g --model "$model" --batch 256 --micro-batches 0
  asked "$model on any number of one type" --fleet "$folder/one.json" --model "$model"
  asked "$model on any number of any of four types" --fleet rented --model "$model"
  asked "$model on two types, stages or copies on both" --fleet two_kinds --model "$model" --stages 0
done
if [ "${1:-}" = --json ]; then echo "{\"cases\": [$cases]}" > "${2:?"--json: its file is missing"}"; fi
