# Machines with prices: the front of time and money over all their parts, of one type of GPU and of all, and the seconds it
# took. Sourced by run.sh. (Astra, arXiv 2502.13480, says 1.27 s and 81 s.)
. tests/packages.sh
install_packages
quietly build/configure.log cmake -S . -B build -G Ninja
quietly build/build.log cmake --build build --target cfp
folder=build/bench/fleets
mkdir -p "$folder"
echo '{"name": "one type", "currency": "USD", "pools": [{"machine": "h100-8x8-400g", "price": 3.0}]}' > "$folder/one.json"
cases=''
for model in gpt2-xl llama-3-8b; do
  for fleet in "$folder/one.json" rented; do
    begin=$(date +%s.%N)
    build/examples/cfp plan --fleet "$fleet" --model "$model" --summary "$folder/answer.json" > "$folder/answer.txt"
    seconds=$(awk -v a="$begin" -v b="$(date +%s.%N)" 'BEGIN { printf "%.2f", b - a }')
    printf '%s in %s: %s s\n' "$model" "$(basename "$fleet" .json)" "$seconds"
    sed -n '/USD\/h/,/^\*/p' "$folder/answer.txt"
    echo
    cases+="${cases:+,}{\"model\": \"$model\", \"seconds\": $seconds, \"answer\": $(cat "$folder/answer.json")}"
  done
done
if [ "${1:-}" = --json ]; then echo "{\"cases\": [$cases]}" > "${2:?"--json: its file is missing"}"; fi
