#!/usr/bin/env bash
# commands.sh CFP MODEL: every command of the program does what it says, and files go from one to the other.
set -euo pipefail
cfp=$(realpath "$1") model=$(basename "$2")
cd "$(dirname "$2")"  # a line names the model as it was given: a long path is not the program's
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
common=(--model "$model" --batch 4 --seq 16)

says() {  # says WORDS COMMAND...: it ends well, and its output has the words
  local words=$1
  shift
  "$@" > "$folder/out" 2> "$folder/err" || { echo "FAILED: $*"; cat "$folder/out" "$folder/err"; exit 1; }
  [ -z "$words" ] || grep -qE -- "$words" "$folder/out" || { echo "FAILED: $* does not say '$words':"; cat "$folder/out"; exit 1; }
  awk -v what="$*" 'length > 120 { print "FAILED: " what " prints a line of " length " columns: " $0; exit 1 }' "$folder/out"
}
holds() {  # holds FILE WORDS...: the file has all of them
  local file=$1
  shift
  for words in "$@"; do
    grep -qF -- "$words" "$file" || { echo "FAILED: $file lacks '$words'"; head -c 2000 "$file"; exit 1; }
  done
}

says "operators .* blocks .* segments" "$cfp" analyse "${common[@]}" --summary "$folder/analysis.json"
holds "$folder/analysis.json" '"exhaustive_log10"' '"data_parallel"'
says "found after running the segments" "$cfp" plan "${common[@]}" --profile-mode full --profile "$folder/table.json" --save-plan "$folder/plan.json" --save-header "$folder/my_plan.hpp"
holds "$folder/my_plan.hpp" "namespace my_plan"
holds "$folder/plan.json" '"decisions"' '"predicted_ms"'
# What parts take is not measured again: the table has the same ones. (Segments run whole may be new.)
parts() { sed -n '/^ "milliseconds"/,/^ }/p' "$folder/table.json" | grep -E '^  "' | grep -v '^  "whole '; }
before=$(parts)
[ "$(wc -l <<< "$before")" -gt 50 ] || { echo "FAILED: the table has few parts:"; echo "$before"; exit 1; }
says "found after running the segments" "$cfp" plan "${common[@]}" --profile "$folder/table.json"
[ "$before" = "$(parts)" ] || { echo "FAILED: other parts were measured"; diff <(echo "$before") <(parts); exit 1; }
says "next best" "$cfp" explain "${common[@]}" --profile "$folder/table.json" --summary "$folder/explained.json"
grep -q "memory's worth: the fastest plan within so much" "$folder/out" || { echo "FAILED: it does not say what memory is worth"; cat "$folder/out"; exit 1; }
holds "$folder/explained.json" '"predicted_ms"'
says "verified over 4 steps" "$cfp" verify "${common[@]}" --steps 4 --plan "$folder/plan.json"
says "data_parallel" "$cfp" compare "${common[@]}" --compare 3 --profile "$folder/table.json" --against "$folder/plan.json"
grep -qF "$folder/plan.json" "$folder/out" || { echo "FAILED: the plan given is not compared"; cat "$folder/out"; exit 1; }
says "trained steps 1 to 6" "$cfp" train "${common[@]}" --steps 6 --plan "$folder/plan.json" --save-plan "$folder/plan.json" \
  --save-state "$folder/state.safetensors" --summary "$folder/trained.json"
holds "$folder/trained.json" '"model"' '"search"' '"training"' '"first": 1' '"last": 6' '"loss"'
says "trained steps 7 to 9" "$cfp" train "${common[@]}" --steps 3 --plan "$folder/plan.json" --load-state "$folder/state.safetensors" \
  --save-state "$folder/state.safetensors"  # over it
head -c 34 /dev/zero > "$folder/one_row.bin"  # as many tokens as one sequence and its targets need
says "trained steps 1 to 2" "$cfp" train "${common[@]}" --steps 2 --plan "$folder/plan.json" --tokens "$folder/one_row.bin"
says "" "$cfp" export "$folder/plan.json" --to header -o "$folder/again.hpp"
diff <(sed 's/my_plan/again/g' "$folder/my_plan.hpp") "$folder/again.hpp"
# A configuration is a file, or a directory that has it.
mkdir "$folder/checkpoint"
cp "$model" "$folder/checkpoint/config.json"
says "2 ranks|sequence=16" "$cfp" analyse --model "$folder/checkpoint" --batch 4 --seq 16
# The summary of a run has its keys.
says "verified over 4 steps" "$cfp" run "${common[@]}" --steps 4 --compare 3 --profile "$folder/table.json" --summary "$folder/run.json"
holds "$folder/run.json" '"model"' '"layers"' '"batch"' '"sequence"' '"type"' '"mesh"' '"operators"' '"blocks"' '"segments"' '"search"' \
  '"exhaustive_log10"' '"strategies"' '"profiled"' '"profile_seconds"' '"solve_seconds"' '"plans"' '"predicted_ms"' '"measured_ms"' \
  '"predicted_peak_bytes"' '"measured_peak_bytes"' '"ratio_to_found"' '"collectives"' '"bytes_per_rank"' '"outside_kernels"' \
  '"oversubscribed"' '"verification"' '"loss_single"' '"loss_parallel"' '"max_relative_error"' '"parameters_left_out"'
# A machine that is measured plans like one that is described.
says "products in bfloat16" "$cfp" sweep --mesh gpu=2 --seconds 0.05 --most 16384 --save-machine "$folder/here.json"
grep -qE "^ +1 KiB( +[0-9.]+){8}$" "$folder/out" || { echo "FAILED: the sweep lacks a collective"; cat "$folder/out"; exit 1; }
holds "$folder/here.json" '"product_rate"' '"all_to_all"' '"levels.gpu.bandwidth": "measured by cfp sweep on '
says "plan for mesh x=2" "$cfp" plan --model "$model" --machine "$folder/here.json" --seq 16
says "plan for mesh data=2" "$cfp" plan --model "$model" --machine "$folder/here.json" --seq 16 --mesh data=2 --type float32
says "a program may use +1 GiB of a device$" "$cfp" sweep --mesh gpu=1 --seconds 0.01 --type float32 --memory 1073741824
# A described machine runs fused kernels unless asked for the other; the first lines say which.
says "operators fused as kernels for GPUs compute them" "$cfp" plan --model "$model" --machine a100-pcie-4 --seq 16 --mesh x=4 --summary "$folder/machine.json"
holds "$folder/machine.json" '"step_ms"' '"kernels"'
says "left out: the seconds given were over" "$cfp" plan --model "$model" --machine a100-pcie-4 --seq 16 --seconds 0.001
says "h.0-299.attn.c_attn.linear .x300." "$cfp" plan --model "$model" --machine a100-8 --seq 16 --mesh x=8 --layers 300
says "^2x2x2 .* not compared" "$cfp" plan --model "$model" --machine a100-8 --seq 16 --axes 3
# Where nothing fits that keeps all, plans compute again what the search chooses, as said of each part.
tight=(plan --model alpa-gpt-1.3b --machine a100-pcie-4 --batch 32 --mesh x=4 --layers 8 --memory 5000000000)
if "$cfp" "${tight[@]}" --recompute none > "$folder/out" 2>&1; then echo "FAILED: it fits without"; exit 1; fi
grep -q "no plan fits" "$folder/out" || { echo "FAILED: it does not say that no plan fits"; cat "$folder/out"; exit 1; }
says "mlp.c_fc.*, .*recomputed" "$cfp" "${tight[@]}" --save-plan "$folder/less.json"
says "zero2, all recomputed" "$cfp" "${tight[@]}"
# As many micro-batches as take least: a plan that is saved is of those, and trains.
passes=(--model "$model" --mesh x=2 --type float32 --batch 64 --seq 32)
says "^by micro-batches: 1 none .*; 2 [0-9.]+ ms; 4 " "$cfp" plan "${passes[@]}" --machine a100-pcie-4 --memory 8000000 --micro-batches 0 --save-plan "$folder/passes.json"
holds "$folder/out" "in each of 2 micro-batches" "--mesh x=2 --micro-batches 2 --batch 64"
says "^trained steps 1 to 2" "$cfp" train "${passes[@]}" --micro-batches 2 --plan "$folder/passes.json" --steps 2
# Which machine of several, and how much of it; where the time of a step goes.
says "^least money: [0-9]+ of [a-z0-9-]+$" "$cfp" plan --model "$model" --fleet rented --batch 64 --seq 16 --tokens 1e9 --budget 90 --least money --save-plan "$folder/cheap.json"
holds "$folder/out" "above the budget" "none takes less of both" "USD/Mtoken" "days"
"$cfp" plan --model "$model" --layers 4 --fleet two_kinds --batch 64 --seq 16 --stages 0 > "$folder/out"
holds "$folder/out" "planned 8 of 8" "least time: "
# A plan for each of several lengths, and for what a machine may become.
says "^64 tokens  +[0-9]: " "$cfp" plan --model "$model" --machine a100-8 --batch 64 --seq 16 --lengths 16,64
says "^4 of 8x A100 80GB NVLink +[0-9]: " "$cfp" plan --model "$model" --machine a100-8 --batch 64 --seq 16 --then a100-8:4,h100-8
says "^together +[0-9.]+$" "$cfp" explain --model "$model" --seq 16 --machine a100-pcie-4 --mesh x=4
holds "$folder/out" "a step's time" "forward  " "backward  " "update  "
# Plans in stages: where each begins, what it takes, and of what memory.
stages=(plan --model "$model" --layers 4 --seq 16 --machine a100-pcie-4)
says "^[24] places of mesh .*, [0-9]+ micro-batches of [0-9]+ rows, by adamw$" "$cfp" "${stages[@]}" --stages 0 --summary "$folder/stages.json"
holds "$folder/stages.json" '"schedule"' '"places"' '"micro_batches"' '"peak_bytes_of_places"' '"stages"' '"first": "wte.lookup"' '"decisions"'
says "^stages? 0.*: .* ms a step, [0-9]+ micro-batch(es)? under way, .* of .*" "$cfp" "${stages[@]/plan/explain}" --stages 2 --micro-batches 4
says "^2 places .* 4 micro-batches of 4 rows" "$cfp" "${stages[@]}" --stages 2 --micro-batches 4 --optimizer adamw-8bit
# One that is saved trains on ranks.
small=(--model "$model" --layers 4 --seq 16 --batch 8 --vocabulary 512 --micro-batches 2 --type float32)
says "^to train under it, with the same model and batch: cfp train " "$cfp" plan "${small[@]}" --machine a100-pcie-4 --stages 2 \
  --save-plan "$folder/staged.json" --save-header "$folder/staged.hpp"
holds "$folder/staged.hpp" 'using crossings = cfp::planned_sends<' 'static constexpr int places = 2;'
mesh=$(sed -n 's/^  --mesh \(stage=2,[^ ]*\) --micro-batches 2 .*/\1/p' "$folder/out")
says "^verified over 2 steps" "$cfp" run "${small[@]}" --mesh "$mesh" --plan "$folder/staged.json" --steps 2 --compare 2
for count in 2 4 8 16; do  # few layers: choices of stages that are as long alone need not join in others
  says "^2 places .*, $count micro-batches of" "$cfp" plan --model gpt2 --layers 1 --seq 64 --machine a100-pcie-4 --stages 2 --micro-batches $count
done
"$cfp" plan --model mixtral-8x7b --layers 2 --machine h100-8 --stages 2 > "$folder/out"  # (the model's line is long)
grep -qE "^2 places .* micro-batches of" "$folder/out" || { echo "FAILED: a mixture of experts in stages:"; cat "$folder/out"; exit 1; }
says "recomputed" "$cfp" "${tight[@]:0:7}" --layers 8 --memory 4000000000 --stages 2
for wrong in "--stages 3|must be 2 or more and divide the machine's 4 devices" "--stages 2 --mesh x=2|stages choose the mesh inside them" \
  "--stages 2 --recompute all|choose what is computed again" "--stages 2 --profile x.json|plans in stages do not know of it so far" "--stages 4 --batch 2|at most 2 micro-batches here, and a pipeline of 4 stages at least as many" \
  "--stages 0,2|0 is any number of places" "--stages 2,4,2|2 stands twice" \
  "--stages 2 --axes 3|--axes: a mesh inside stages has 1 or 2" "--stages 2 --optimizer adamw,adafactor|--optimizer: stages are planned for one" \
  "--stages 2 --micro-batches 1|a pipeline has 2 or more" "--stages 2 --seconds 0.001|no plan in stages was found in the seconds given" \
  "--stages 2 --memory 1000000|no plan in stages fits"; do
  code=0
  # shellcheck disable=SC2086
  "$cfp" "${stages[@]}" ${wrong%%|*} > "$folder/out" 2> "$folder/err" || code=$?
  { [ "$code" = 2 ] && grep -qF -- "${wrong#*|}" "$folder/err"; } || { echo "FAILED: ${wrong%%|*}: $code"; cat "$folder/err"; exit 1; }
done
code=0
"$cfp" plan --model "$model" --layers 1 --seq 16 --machine a100-8 --stages 8 > "$folder/out" 2> "$folder/err" || code=$?
{ [ "$code" = 2 ] && grep -q "^the model can be cut into [2-7] stages at most, and there must be 8 stages" "$folder/err"; } || { echo "FAILED: too few layers: $code"; cat "$folder/err"; exit 1; }
# Schedules, by name and as files.
says "^33 ms, 27.27% idle$" "$cfp" schedule 1f1b --micro-batches 8 --svg "$folder/schedule.svg" --save-schedule "$folder/schedule.json"
holds "$folder/schedule.svg" '>backward of micro-batch 7 by stage 3<'
says "^1f1b: 4 stages on 4 ranks, 8 micro-batches; forward 2 ms, backward 2$" "$cfp" schedule "$folder/schedule.json" --forward 2
says "16 versions of weights at most; gradients are of weights 15 updates old" "$cfp" schedule pipedream --ranks 16
# Optimizers of less state: of several that of the fastest plan. Where little fits, state rests on the host.
says "plan for mesh x=4, .* by adamw-8bit" "$cfp" "${tight[@]}" --optimizer adamw,adamw-8bit
few=(--model "$model" --batch 16 --seq 16 --mesh data=2 --memory 4400000)
says "state on the host" "$cfp" plan "${few[@]}" --machine a100-pcie-4 --unfused --type float32 --save-plan "$folder/host.json"
says "on the host, MiB: weights and optimizer 0.[1-9], kept for backward 0.[1-9]" "$cfp" verify "${few[@]}" --steps 2 --plan "$folder/host.json"
# What was saved says what may be chosen: it runs without the limit it was found within.
without=("${few[@]/4400000/900000000}")
says "on the host, MiB: weights and optimizer 0.[1-9]" "$cfp" verify "${few[@]:0:8}" --steps 2 --plan "$folder/host.json"
says "in all [0-9.]+ of 858.3 that it may take" "$cfp" verify "${without[@]}" --steps 2 --plan "$folder/host.json"
says "above the limit of memory, so that they are no plans to take: .*replicated" "$cfp" compare "${few[@]:0:8}" --memory 8000000 --compare 2
says "trained steps" "$cfp" train "${common[@]}" --steps 1 --optimizer adafactor --save-state "$folder/adafactor.safetensors"
if "$cfp" train "${common[@]}" --steps 1 --load-state "$folder/adafactor.safetensors" > "$folder/out" 2>&1; then echo "FAILED: it goes on from the state of another optimizer"; exit 1; fi
grep -q "is missing; the state is of another optimizer" "$folder/out" || { echo "FAILED: it does not say of what the state is"; cat "$folder/out"; exit 1; }
says "border on the host" "$cfp" "${tight[@]/5000000000/3300000000}" --save-header "$folder/host.hpp"
holds "$folder/host.hpp" 'planned<"h.0.attn.masked_softmax"'
says "that was in float32; in .*adamw-8bit and with gradients sent as 8bit" "$cfp" verify "${common[@]}" --steps 4 --optimizer adamw-8bit --gradients 8bit
# What memory is worth: the plan that is free of a limit, and those within less.
says "ms +[0-9.]+ +found, more than there is" "$cfp" explain "${tight[@]:1}" --summary "$folder/curve.json"
holds "$folder/curve.json" '"curve"' '"fits": false' '"fits": true'
says "every operator by itself" "$cfp" plan --model "$model" --machine a100-pcie-4 --seq 16 --mesh x=4 --unfused --save-plan "$folder/there.json"
holds "$folder/there.json" '"decisions"'
# A page of a plan, and its timeline (what they say: report_data.py); a plan of another model is none of this one's.
says "^mesh x=4: a step takes [0-9.]+ ms, a device at most [0-9.]+ GiB" "$cfp" report --model "$model" --machine a100-pcie-4 --seq 16 --unfused "$folder/there.json" -o "$folder/plan.html" \
  --trace "$folder/trace.json"
holds "$folder/plan.html" '<script type="application/json" id="data">' '"predicted_ms"'
holds "$folder/trace.json" '"traceEvents"'
code=0
"$cfp" report --model "$model" --machine a100-pcie-4 --seq 32 --unfused --plan "$folder/there.json" -o "$folder/other.html" > "$folder/out" 2> "$folder/err" || code=$?
{ [ "$code" = 2 ] && grep -q "is of model 'tiny_gpt.json .*sequence=16 .*', this is '.*sequence=32" "$folder/err" && [ ! -e "$folder/other.html" ]; } || { echo "FAILED: a report of another model's plan: $code"; cat "$folder/err"; exit 1; }
# --json: the summary and nothing else. Each is one object, as jq and others read it.
is_json() {  # is_json COMMAND...
  "$@" --json > "$folder/out" 2> "$folder/err" || { echo "FAILED: $* --json"; cat "$folder/out" "$folder/err"; exit 1; }
  { [ "$(head -c 1 "$folder/out")" = "{" ] && [ "$(tr -d '[:space:]' < "$folder/out" | tail -c 1)" = "}" ]; } || { echo "FAILED: $* --json prints more than JSON:"; cat "$folder/out"; exit 1; }
  ! command -v python3 > /dev/null || python3 -m json.tool "$folder/out" > /dev/null || { echo "FAILED: $* --json prints no JSON:"; cat "$folder/out"; exit 1; }
}
is_json "$cfp" analyse "${common[@]}"
holds "$folder/out" '"exhaustive_log10"'
is_json "$cfp" plan --model "$model" --machine a100-8 --seq 16
holds "$folder/out" '"step_ms"'
is_json "$cfp" plan --model "$model" --machine a100-8 --seq 16 --stages 2 --layers 4
is_json "$cfp" plan --model "$model" --machine a100-8 --seq 16 --mesh x=8
holds "$folder/out" '"terms"' '"beside_ms"'
is_json "$cfp" plan --model "$model" --fleet rented --batch 64 --seq 16
holds "$folder/out" '"offers"' '"front": true' '"taken"'
is_json "$cfp" plan --model "$model" --machine a100-8 --batch 64 --seq 16 --lengths 16,64
holds "$folder/out" '"conditions"' '"lost_bytes"'
is_json "$cfp" train "${common[@]}" --steps 2 --summary "$folder/also.json"
holds "$folder/out" '"training"'
diff "$folder/out" "$folder/also.json"
is_json "$cfp" report --model "$model" --machine a100-8 --seq 16 --mesh x=8 -o "$folder/plan.html"
holds "$folder/out" '"page"'
is_json "$cfp" schedule 1f1b
holds "$folder/out" '"ms": 33.0' '"idle"'
is_json "$cfp" sweep --mesh gpu=1 --seconds 0.01 --most 1024
holds "$folder/out" '"product_rate"'
# What a shell completes.
completes() {  # completes WORD WORDS...: among what the last of WORDS is completed to
  local want=$1
  shift
  COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
  _cfp
  printf '%s\n' "${COMPREPLY[@]}" | grep -qx -- "$want" || { echo "FAILED: '$*' is completed to: ${COMPREPLY[*]}"; exit 1; }
}
eval "$("$cfp" completion | grep -v '^complete ')"
completes plan cfp pl
completes --model cfp plan --mo
completes llama-3-8b cfp plan --model llama-3
completes h100-8 cfp plan --machine h1
completes rented cfp plan --fleet r
completes bfloat16 cfp train --type b
completes "$model" cfp plan --model tiny
touch "$folder/a model.json"
completes "$folder/a model.json" cfp plan --model "$folder/a"
COMP_WORDS=(cfp plan --type x) COMP_CWORD=3
_cfp
[ ${#COMPREPLY[@]} = 0 ] || { echo "FAILED: an option's words are completed to files: ${COMPREPLY[*]}"; exit 1; }
