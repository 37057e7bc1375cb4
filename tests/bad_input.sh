#!/usr/bin/env bash
# Bad input: exit code 2, one sentence on stderr that names the culprit, no output file touched.
set -u
cfp=$(realpath "$1")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
failed=0
tiny=$(cd "$(dirname "$0")" && pwd)/tiny_gpt.json

command="run --steps 1 --compare 0"
expect() {  # expect WORDS ARGUMENTS...
  local words=$1
  shift
  echo untouched > "$dir/summary.json"
  "$cfp" $command --summary "$dir/summary.json" "$@" > "$dir/out" 2> "$dir/err"
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
head -c 40 "$tiny" > "$dir/model.json"; expect "this is not JSON" --model "$dir/model.json"
with model_type '"mamba"'; expect "key 'model_type' must be \"gpt2\" or \"opt\" or \"gpt_neo\" or \"gpt_neox\" or \"gptj\" or \"bloom\" or \"mpt\" or \"falcon\" or \"llama\" or \"mistral\" or \"qwen2\" or \"qwen3\" or \"gemma\" or \"gemma2\" or \"phi\" or \"phi3\" or \"stablelm\" or \"olmo2\" or \"cohere\" or \"bert\" or \"roberta\" or \"vit\" or \"mixtral\" or \"gshard\" or \"dbrx\" or \"qwen2_moe\" or \"qwen3_moe\" or \"deepseek_v2\" or \"deepseek_v3\" or \"t5\", is \"mamba\"" --model "$dir/model.json"
with n_head 5; expect "key 'n_head' must divide n_embd 64, is 5" --model "$dir/model.json"
with n_embd '"wide"'; expect "key 'n_embd' must be a whole number, is \"wide\"" --model "$dir/model.json"
grep -v n_layer "$tiny" > "$dir/model.json"; expect "key 'n_layer' is missing" --model "$dir/model.json"
expect "divides nothing" --model "$tiny" --batch 1 --seq 15 --mesh data=7
expect "axis 'data' must be a number from 1 to 999, is 'x'" --model "$tiny" "${small[@]}" --mesh data=x
expect "stands twice" --model "$tiny" "${small[@]}" --mesh data=2,data=2
expect "write axes as name=size" --model "$tiny" "${small[@]}" --mesh 2
expect "sequences of 65 tokens exceed n_positions 64" --model "$tiny" --batch 4 --seq 65
expect "no plan fits; the leanest plan found needs" --model "$tiny" "${small[@]}" --memory 1000
expect "--text $dir/none: cannot be read" --model "$tiny" "${small[@]}" --text "$dir/none"
expect "plan $dir/none: cannot be read" --model "$tiny" "${small[@]}" --plan "$dir/none"
echo '{"model": 1' > "$dir/plan"; expect "plan $dir/plan:" --model "$tiny" "${small[@]}" --plan "$dir/plan"

expect "--batch 4 cannot be cut into 3 micro-batches of whole sequences; give --micro-batches 2" --model "$tiny" "${small[@]}" --micro-batches 3
with attn_pdrop 1; expect "key 'attn_pdrop' must be a number from 0 up to but not including 1, is 1" --model "$dir/model.json" "${small[@]}"
expect "plan $dir/no: cannot be read" --model "$tiny" --against "$dir/no" "${small[@]}"
expect "leave one out" --model "$tiny" --plan "$dir/no" --explain "${small[@]}"
expect "--tolerance: everything is measured" --model "$tiny" --explain --tolerance 5% "${small[@]}"
expect "--tolerance: everything is measured" --model "$tiny" --profile-mode full --tolerance 5% "${small[@]}"
expect "leave one out" --model "$tiny" --plan "$dir/no" --against "$dir/no" "${small[@]}"
[ -e /dev/nvidia0 ] || expect "--backend cuda: " --model "$tiny" --seq 16 --backend cuda
command=plan
expect "nowhere: cannot be read; give --machine a file or one of" --model "$tiny" --seq 16 --machine nowhere
echo '{"name": "a machine"}' > "$dir/machine.json"; expect "$dir/machine.json: the file must have" --model "$tiny" --seq 16 --machine "$dir/machine.json"
expect "a mesh of 16 devices does not fit on '8x A100 80GB NVLink', which has 8" --model "$tiny" --seq 16 --machine a100-8 --mesh data=16
expect "no plan fits in 1000 bytes of a device; the leanest plan tried, on mesh data=8, needs " --model "$tiny" --seq 16 --machine a100-8 --mesh data=8 --memory 1000
expect "nothing may be computed again, which would take less memory; take more --memory (bytes), leave out --recompute" --model "$tiny" --seq 16 --machine a100-8 --mesh data=8 --memory 1000 --recompute none
expect "--memory: it is a number of bytes such as 1500000000 or 16GiB" --model "$tiny" --seq 16 --memory 16GB
expect "--memory: its value is missing" --model "$tiny" --memory
expect "--batch: it is given 2 times, give it once" --model "$tiny" --batch 4 --batch 8
expect "optimizer adamw is there twice" --model "$tiny" --seq 16 --machine a100-8 --mesh data=8 --optimizer adamw,adamw
expect "table $dir/none: it cannot be read; cfp plan --backend cuda makes one, on a GPU" --model "$tiny" --seq 16 --machine a100-8 --profile "$dir/none"
expect "a table of operators is of the fused kernels in bfloat16" --model "$tiny" --seq 16 --machine a100-8 --profile "$dir/none" --type float32
echo '{"version": 1, "machine": "here", "model": "gpt", "mesh": "data=2"}' > "$dir/table"
expect "table $dir/table: its model is 'gpt', this is 'operators'" --model "$tiny" --seq 16 --machine a100-8 --profile "$dir/table"
command="run --steps 1 --compare 0"
# A sweep: nothing is measured for a file that cannot be.
sweep() {  # sweep WORDS ARGUMENTS...
  local words=$1
  shift
  timeout 20 "$cfp" sweep --seconds 1000 "$@" > "$dir/out" 2> "$dir/err"
  local code=$?
  if [ $code -ne 2 ] || [ "$(cat "$dir/err")" != "$words" ] || [ -s "$dir/out" ]; then
    echo "FAILED: sweep $* -> exit code $code, expected 2 and '$words', got:"
    cat "$dir/err"
    failed=1
  fi
}
sweep "--save-machine $dir/none/machine.json: cannot be written: No such file or directory" --mesh gpu=2 --save-machine "$dir/none/machine.json"
sweep "--save-machine $dir: cannot be written: what is there is no file" --mesh gpu=2 --save-machine "$dir"
sweep "mesh a=1,b=2,c=1: a sweep takes one axis, or two of which the first goes across machines" --mesh a=1,b=2,c=1
sweep "mesh gpu=x: the size of axis 'gpu' must be a number from 1 to 999, is 'x'" --mesh gpu=x
echo untouched > "$dir/machine.json"
sweep "mesh a=1,b=1,c=2: a sweep takes one axis, or two of which the first goes across machines" --mesh a=1,b=1,c=2 --save-machine "$dir/machine.json"
[ "$(cat "$dir/machine.json")" = untouched ] && [ ! -e "$dir/machine.json.new" ] || { echo "FAILED: a sweep that was refused left a file"; failed=1; }
# What an option takes, and what commands ignore.
refused() {  # refused WORDS COMMAND ARGUMENTS...: at once, whatever it would take
  local words=$1
  shift
  timeout 20 "$cfp" "$@" > "$dir/out" 2> "$dir/err"
  local code=$?
  if [ $code -ne 2 ] || ! grep -qF -- "$words" "$dir/err" || [ "$(wc -l < "$dir/err")" -ne 1 ] || [ -s "$dir/out" ]; then
    echo "FAILED: $* -> exit code $code, expected 2 and '$words', got:"
    head -c 2000 "$dir/out" "$dir/err"
    failed=1
  fi
}
long=(--model "$tiny" "${small[@]}" --steps 100000)
commands="the commands are run, plan, verify, train, compare, analyse, explain, report, sweep, schedule, export, completion"
refused "foo: it is no command; $commands" foo
refused "train takes no 7;" train --model "$tiny" 7
refused "--foo: it is no command; $commands" --foo
refused "a command is missing; $commands"
for option in model layers batch seq vocabulary mesh backend type deadline memory profile plan against tolerance profile-mode \
              save-plan save-header summary steps rate schedule clip text tokens save-state load-state save-weights load-weights seed save-every; do
  refused "--$option: its value is an empty text" train "${long[@]}" --$option ''
done
# Reports: what is wrong ends them before anything is planned, and nothing is written.
there=(report --model "$tiny" --machine a100-8)
refused "report needs -o FILE: where the page is written" "${there[@]}"
refused "--output: its value is missing" "${there[@]}" -o
refused "-o $dir/none/plan.html: cannot be written: No such file or directory" "${there[@]}" -o "$dir/none/plan.html"
refused "-o $dir: cannot be written: what is there is no file" "${there[@]}" -o "$dir"
refused "--trace $dir/none/trace.json: cannot be written: No such file or directory" "${there[@]}" -o "$dir/plan.html" --trace "$dir/none/trace.json"
refused "one file for this and for -o, and one would overwrite the other" "${there[@]}" -o "$dir/plan.html" --trace "$dir/plan.html"
refused "--plan $dir: it is a directory, give a file" "${there[@]}" "$dir" -o "$dir/plan.html"
refused "plan $dir/no: cannot be read" "${there[@]}" "$dir/no" -o "$dir/plan.html"
refused "give the --machine that it is priced on" report --model "$tiny" --plan "$dir/plan" -o "$dir/plan.html"
refused "--mesh: a saved plan says its own mesh; leave it out" "${there[@]}" "$dir/no" --mesh x=8 -o "$dir/plan.html"
refused "--stages: it is of a machine that is described" report --model "$tiny" --stages 2 -o "$dir/plan.html"
echo '{"version": 1, "mesh": {"x": 8}}' > "$dir/plan"; refused "plan $dir/plan: the plan must have 'model'" "${there[@]}" --plan "$dir/plan" -o "$dir/plan.html"
[ ! -e "$dir/plan.html" ] && [ ! -e "$dir/plan.html.new" ] || { echo "FAILED: a report that was refused left a file"; failed=1; }
for list in 2,,4 ,2 2,; do refused "--stages: an element of its list is empty, got: $list" plan --model "$tiny" --machine a100-8 --stages $list; done
refused "--machine: its value is an empty text" plan --model "$tiny" --machine ''
refused "--save-machine: its value is an empty text" sweep --save-machine ''
refused "--compare: its value is an empty text" run --compare ''
for option in --save-plan --save-header --plan --against --profile --profile-mode --tolerance; do
  refused "analyse takes no $option; cfp analyse --help lists what it takes" analyse --model "$tiny" $option 1
done
refused "analyse takes no --explain; cfp analyse --help lists what it takes" analyse --model "$tiny" --explain
for option in --summary --profile --against --tolerance --save-plan --save-header --backend --memory --deadline; do
  refused "export takes no $option; cfp export --help lists what it takes" export --plan "$dir/no" $option 1
done
refused "export: what for is missing, give --to TARGET" export "$dir/no"
refused "--machine: --to jax says the plan as it is and prices no other; leave it out" export "$dir/no" --to jax -o "$dir/jax.py" --machine foo
refused "--inputs: $dir/no.onnx says itself what its weights are" analyse --model "$dir/no.onnx" --inputs x
for option in "--budget 1" "--tokens 1e9" "--least money"; do
  refused "${option% *}: it is of several machines to choose among, give --fleet too" plan --model "$tiny" $option
done
refused "--machine: --fleet asks which machine and mesh; leave one out" plan --model "$tiny" --fleet rented --machine a100-8
refused "--mesh: --fleet asks which machine and mesh; leave one out" plan --model "$tiny" --fleet rented --mesh x=8
for option in "--profile $dir/table.json" "--tolerance 0" "--deadline 3"; do
  refused "--fleet simulates and runs nothing: leave out ${option%% *}" plan --model "$tiny" --fleet rented $option
done
refused "--stages: --fleet asks how many places there are; say 0, for any number" plan --model "$tiny" --fleet rented --stages 2
for asked in "--lengths 8,16" "--then a100-8"; do
  refused "${asked% *}: it is of a machine that is described, give --machine too" plan --model "$tiny" $asked
  for option in "--stages 0" "--save-plan $dir/no.json" "--fleet rented" --explain; do
    refused "${option% *}: ${asked% *} compares a plan for each; leave it out, or plan for one" plan --model "$tiny" --machine a100-8 $asked $option
  done
done
refused "--lengths: --then has the same model on other machines; leave one out" plan --model "$tiny" --machine a100-8 --lengths 8 --then h100-8
refused "--lengths: 8 stands twice" plan --model "$tiny" --machine a100-8 --lengths 8,8 --seq 16
refused "--lengths: a step of 512 tokens (--batch times --seq) has no whole number of sequences of 12" plan --model "$tiny" --machine a100-8 --lengths 12 --seq 16
refused "attention in 3 pieces: they must divide the sequence, of 16 tokens" plan --model "$tiny" --machine a100-8 --pieces 3 --seq 16
refused "--then a100-8:3: '8x A100 80GB NVLink' has whole parts of 1, 2, 4, 8 devices; take one of them" plan --model "$tiny" --machine a100-8 --then a100-8:3 --seq 16
refused "no: cannot be read; give --then a file" plan --model "$tiny" --machine a100-8 --then no --seq 16
refused "no: cannot be read; give --fleet a file or one of rented, two_kinds" plan --model "$tiny" --fleet no
echo '{"name": "mine", "currency": "EUR", "pools": [{"machine": "a100-8", "price": 0}]}' > "$dir/fleet.json"
refused "fleet.json: pools[0].price must be what a device costs in an hour, above 0 and at most 1e6, got 0" plan --model "$tiny" --fleet "$dir/fleet.json"
echo '{"name": "mine", "currency": "EUR", "pools": [{"machine": "a100-8", "price": 1}], "between": {"bandwidth": 0, "latency": 0}}' > "$dir/fleet.json"
refused "fleet.json: between.bandwidth must be bytes per second from 1.0 to 1e+15, got 0" plan --model "$tiny" --fleet "$dir/fleet.json"
refused "--budget 0.5: the cheapest part of rented GPUs costs 1.3 USD an hour" plan --model "$tiny" "${small[@]}" --fleet rented --budget 0.5
refused "--seq 7: an image of " analyse --model vit-base --seq 7
for option in --steps --save-state --load-state; do refused "compare takes no $option; cfp compare --help lists what it takes" compare --model "$tiny" $option 1; done
refused "--unfused: it is of a machine that is described, give --machine too" plan --model "$tiny" --unfused
refused "--seconds: it is of a machine that is described, give --machine too" plan --model "$tiny" --seconds 1
refused "--axes: it is of a machine that is described, give --machine too" plan --model "$tiny" --axes 3
refused "--recompute: it is of a machine that is described, give --machine too" plan --model "$tiny" --recompute none
refused "--axes: it says which meshes are tried" plan --model "$tiny" --machine a100-8 --mesh x=8 --axes 3
refused "--together: it is of a machine that is described, give --machine too" plan --model "$tiny" --together 5
for option in --tolerance=0 --profile-mode=lazy --deadline=3; do
  refused "runs nothing: leave out ${option%=*}" plan --model "$tiny" --machine a100-8 $option
done
refused "--steps: it is a whole number from 1 to 100000, got: 0" verify --model "$tiny" --steps 0
refused "--compare: it is a whole number from 1 to 100000, got: 0" compare --model "$tiny" --compare 0
for option in --save-state --load-state --save-weights --load-weights; do
  refused "$option: --steps 0 trains nothing, leave one of them out" run --model "$tiny" --steps 0 $option "$dir/state"
done
for n in -1 18446744073709551616 1.5 x; do
  refused "--seed: it is a whole number from 0 to 18446744073709551615, got: $n" train "${long[@]}" --seed $n
done
for n in -5 0 2147483648; do
  refused "--vocabulary: it is a whole number from 1 to 2147483647, got: $n" train "${long[@]}" --vocabulary $n
done
for n in -1 nan x; do refused "--clip: it is a number of 0 or more, got: $n" train "${long[@]}" --clip $n; done
refused "--rate: it is a number from 0 to 1000, got: 1001" train "${long[@]}" --rate 1001
refused "--layers: it is a whole number from 1 to 10000, got: 2x" train "${long[@]}" --layers 2x
refused "--schedule: it is a whole number from 0 to 1000000000, got: -1" train "${long[@]}" --schedule 2,-1
refused "--schedule 10,2: the warm-up lasts beyond the end; a rate that stays has 0 as its end" train "${long[@]}" --schedule 10,2
refused "--vocabulary 100: it must be 256 or more, as tokens are bytes" train "${long[@]}" --vocabulary 100
with vocab_size 100
refused "$dir/model.json: its vocabulary, 100 padded to 128, must be 256 or more, as tokens are bytes; give --vocabulary 256" train --model "$dir/model.json"
# Files: what is read is no directory, nothing is written over what another option names, and all that is to be can be.
mkdir "$dir/checkpoint"
cp "$tiny" "$dir/checkpoint/config.json"
cp "$tiny" "$dir/here.json"
for option in text tokens plan against profile load-state; do
  refused "--$option $dir/checkpoint: it is a directory, give a file" train "${long[@]}" --$option "$dir/checkpoint"
done
apart() {  # apart OPTION OTHER ARGUMENTS...: they name one file
  local option=$1 other=$2
  shift 2
  echo untouched > "$dir/one"
  refused "$option $dir/one: one file for this and for $other, and one would overwrite the other; give two" "$@" $option "$dir/one" $other "$dir/checkpoint/../one"
  [ "$(cat "$dir/one")" = untouched ] || { echo "FAILED: $option and $other: the file is another"; failed=1; }
}
outputs=(--save-header --save-plan --profile --save-state --summary)
for option in --save-header --save-state --summary; do
  for other in --plan --against --text --profile --save-plan; do apart $option $other train "${long[@]}"; done
done
apart --summary --save-state train "${long[@]}"
apart --save-plan --text train "${long[@]}"
apart --save-plan --load-state train "${long[@]}"
apart --save-weights --load-state train "${long[@]}"
refused "--load-state and --load-weights: training begins with one of them, leave one out" train "${long[@]}" --load-state "$dir/one" --load-weights "$dir/one"
refused "--text and --tokens: training is on one of them, leave one out" train "${long[@]}" --text "$dir/one" --tokens "$dir/one"
refused "$dir/checkpoint: has neither model.safetensors nor model.safetensors.index.json" train "${long[@]}" --load-weights "$dir/checkpoint"
echo '{"weight_map": {"a": "part.safetensors"}}' > "$dir/index.json"
refused "a part of --load-weights $dir/part.safetensors: one file for this and for --save-weights, and one would overwrite the other; give two" train "${long[@]}" --load-weights "$dir/index.json" --save-weights "$dir/part.safetensors"
refused "$dir/one: is no safetensors file: its header does not fit" train "${long[@]}" --load-weights "$dir/one"
refused "--tokens $dir/one: has 5 tokens, a sequence needs" train "${long[@]}" --tokens "$dir/one"
head -c 32 /dev/zero > "$dir/sixteen"  # the target of a sequence's last token is behind it
refused "--tokens $dir/sixteen: has 16 tokens, a sequence needs 17" train "${long[@]}" --tokens "$dir/sixteen"
refused "$dir/none: cannot be read: there is no such file" train "${long[@]}" --tokens "$dir/none"
apart --summary --machine plan --model "$tiny"
refused "--summary $dir/checkpoint/config.json: one file for this and for --model" train --model "$dir/checkpoint" --summary "$dir/checkpoint/config.json"
ln -s one "$dir/link"
refused "--summary $dir/link: one file for this and for --save-plan" train "${long[@]}" --save-plan "$dir/one" --summary "$dir/link"
(cd "$dir" && refused "--summary new: one file for this and for --save-plan" train "${long[@]}" --save-plan ./new --summary new; exit $failed) || failed=1
refused "--save-plan $dir/one: one file for this and for --plan" train "${long[@]}" --plan "$dir/one.new" --save-plan "$dir/one" # what a file is called until it is whole
for option in "${outputs[@]}"; do
  refused "$option $dir/none/file: cannot be written: No such file or directory" train "${long[@]}" $option "$dir/none/file"
  refused "$option /dev/full: cannot be written: what is there is no file" train "${long[@]}" $option /dev/full
  [ $option = --profile ] || refused "$option $dir: cannot be written: what is there is no file" train "${long[@]}" $option "$dir"
done
refused "--summary $dir/none/file: cannot be written" plan --model "$tiny" --machine a100-8 --summary "$dir/none/file"
refused "--summary $dir/none/file: cannot be written" analyse --model "$tiny" --summary "$dir/none/file"
[ "$(cat "$dir/one")" = untouched ] && [ -z "$(find "$dir" -name '*.new')" ] || { echo "FAILED: what was refused left a file"; failed=1; }
refused "schedule 'none' is none of gpipe, 1f1b" schedule none
refused ", and no file that can be read" schedule none.json
refused "--micro-batches 0: those that take least are looked for where a plan is made for a machine" plan --model "$tiny" --micro-batches 0
refused "--micro-batches 0: --lengths compares plans for as many micro-batches; say how many" plan --model "$tiny" --machine v100-8 --lengths 16,32 --micro-batches 0
refused "6 micro-batches on 4 ranks with 2 stages each" schedule interleaved --micro-batches 6
refused "the product of these is at most" schedule 1f1b --ranks 4096 --micro-batches 100000
refused "--forward and --backward are both 0" schedule gpipe --forward 0 --backward 0
refused "--chunks: a rank has one stage unless" schedule gpipe --chunks 2
refused "--slices: a micro-batch is whole unless the schedule is terapipe or seq1f1b" schedule gpipe --slices 2
refused "--svg $dir/schedule: one file for this and for --save-schedule" schedule gpipe --save-schedule "$dir/schedule" --svg "$dir/schedule"
"$cfp" schedule gpipe --save-schedule "$dir/own" > "$dir/out"
for option in --svg --save-schedule; do refused "$option $dir/own: one file for this and for SCHEDULE" schedule "$dir/own" $option "$dir/own"; done
for mesh in data=2,stage=2 stage=1; do refused "axis 'stage' of a mesh" run --model "$tiny" --mesh $mesh; done
refused "mesh stage=2,x=2: plans in stages choose their mesh" plan --model "$tiny" --seq 16 --machine a100-8 --mesh stage=2,x=2
refused "--svg $dir/none/file: cannot be written" schedule gpipe --svg "$dir/none/file"
refused "schedule pipedream_2bw: 2 micro-batches in steps of 4" schedule pipedream_2bw --micro-batches 2
"$cfp" schedule gpipe --save-schedule "$dir/schedule" > "$dir/out" || { echo "FAILED: a schedule is not written"; failed=1; }
refused "--ranks: the schedule of $dir/schedule is as long as it is" schedule "$dir/schedule" --ranks 2
sed -i 's/"f0.3",//' "$dir/schedule"
refused "$dir/schedule: schedule gpipe: forward of micro-batch 3 by stage 0 is missing" schedule "$dir/schedule"
rm "$dir/schedule" "$dir/out"
# Uneven splits are left out by name; the rest is planned.
"$cfp" verify --model "$tiny" --batch 5 --seq 16 --steps 2 > "$dir/out" 2> "$dir/err" || { echo "FAILED: an odd batch"; cat "$dir/err"; failed=1; }
grep -qF "left out: dimension 'batch' has 5 elements, which 2 devices (data=2) do not divide; take a multiple of 2 or fewer devices" "$dir/out" ||
  { echo "FAILED: an odd batch is not named"; head -8 "$dir/out"; failed=1; }

# Graphs.
graph=$(dirname "$tiny")/../examples/graphs/gpt_block.onnx
command="run --steps 1 --compare 0"
head -c 1000 "$graph" > "$dir/model.onnx"; expect "$dir/model.onnx: it is cut off or no such file" --model "$dir/model.onnx" "${small[@]}"
expect "$dir/none.onnx: cannot be read: there is no such file" --model "$dir/none.onnx" "${small[@]}"
cp "$tiny" "$dir/model.hlo"; expect "$dir/model.hlo: " --model "$dir/model.hlo" "${small[@]}"
expect "--dim: $graph has no dimension 'rows'" --model "$graph" --batch 4 --seq 1024 --dim rows=3
expect "--dim: it is NAME=SIZE with a size of 1 or more, got: rows" --model "$graph" "${small[@]}" --dim rows
expect "--layers: it is of a configuration file, not of a graph" --model "$graph" "${small[@]}" --layers 2
expect "--dim: it is of a graph's file, .onnx or .hlo" --model "$tiny" "${small[@]}" --dim rows=3
expect "the graph has no output 'logits'" --model "$graph" "${small[@]}" --loss logits

# The other models: the file is TINY with one key changed.
of() {  # of TINY KEY VALUE
  tiny=$(dirname "$tiny")/tiny_$1.json
  with "$2" "$3"
}
of llama num_attention_heads 3; expect "key 'num_attention_heads' must divide hidden_size 64, is 3" --model "$dir/model.json" "${small[@]}"
of llama num_key_value_heads 3; expect "key 'num_key_value_heads' must divide num_attention_heads 4, is 3" --model "$dir/model.json" "${small[@]}"
of llama num_attention_heads 64; expect "must give every head an even number of dimensions" --model "$dir/model.json" "${small[@]}"
of llama hidden_act '"gelu"'; expect "key 'hidden_act' must be \"silu\", \"gelu_new\" or \"gelu_pytorch_tanh\", is \"gelu\"" --model "$dir/model.json" "${small[@]}"
of llama tie_word_embeddings '"no"'; expect "must be true or false" --model "$dir/model.json" "${small[@]}"
of llama hidden_size 999999984; expect "more elements than memory can hold" --model "$dir/model.json" --vocabulary 999999999 "${small[@]}"
expect "this needs" --model llama-3-70b --layers 80 "${small[@]}"
of mixtral num_experts_per_tok 5; expect "key 'num_experts_per_tok' must be at most num_local_experts 4, is 5" --model "$dir/model.json" "${small[@]}"
of gshard num_experts 0; expect "key 'num_experts' must be at least 1" --model "$dir/model.json" "${small[@]}"
expect "does not make whole groups" --model "$tiny" --batch 5 --seq 16
of t5 relative_attention_num_buckets 6; expect "must be a multiple of 4, is 6" --model "$dir/model.json" "${small[@]}"
of t5 model_type '"bart"'; expect "key 'model_type' must be \"gpt2\" or \"opt\" or \"gpt_neo\" or \"gpt_neox\" or \"gptj\" or \"bloom\" or \"mpt\" or \"falcon\" or \"llama\" or \"mistral\" or \"qwen2\" or \"qwen3\" or \"gemma\" or \"gemma2\" or \"phi\" or \"phi3\" or \"stablelm\" or \"olmo2\" or \"cohere\" or \"bert\" or \"roberta\" or \"vit\" or \"mixtral\" or \"gshard\" or \"dbrx\" or \"qwen2_moe\" or \"qwen3_moe\" or \"deepseek_v2\" or \"deepseek_v3\" or \"t5\", is \"bart\"" --model "$dir/model.json" "${small[@]}"
exit $failed
