#!/usr/bin/env bash
# launched.sh CASE CFP MODEL [MPIEXEC]: the program cfp on ranks that have a GPU of the stand-in each, and are processes that are started as
# torchrun starts them, or by mpirun.
set -euo pipefail
case=$1 cfp=$2 model=$3 mpiexec=${4:-}
launch=$(dirname "$0")/../launch.sh
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export CFP_STAND_IN_FOLDER=$folder LAUNCH_OUT=$folder
common=(--backend cuda --type bfloat16 --model "$model" --layers 1 --batch 2 --seq 8 --profile-mode lazy)

# ended CODE WORDS COMMAND...: it must end with that code, and some process say that
ended() {
  local code=$1 words=$2 got=0
  shift 2
  rm -f "$folder"/out.*
  timeout 200 "$@" > "$folder/out" 2>&1 || got=$?
  if [ "$got" -ne "$code" ] || ! cat "$folder"/out* | grep -q -- "$words"; then
    echo "ended with $got, expected $code and '$words' in:"
    tail -n +1 "$folder"/out*
    exit 1
  fi
}

case $case in
  session)  # two processes plan, verify, compare, and save; two threads go on, as without a break
    ended 0 "verified over 2 steps" bash "$launch" 2 "$cfp" run "${common[@]}" --mesh data=2 --steps 2 --compare 1 --profile "$folder/table" \
      --save-plan "$folder/plan" --save-state "$folder/state"
    [ ! -s "$folder/out.1" ] || { echo "the second process speaks:"; cat "$folder/out.1"; exit 1; }
    grep -q "a GPU of the stand-in" "$folder/table"
    ends() { sed -n 's/^step 4: loss \([0-9.]*\),.*/\1/p' "$folder/out"; }
    ended 0 "^step 4: loss" "$cfp" train "${common[@]}" --mesh data=2 --steps 2 --profile "$folder/table" --plan "$folder/plan" --load-state "$folder/state"
    rest=$(ends)
    ended 0 "^step 4: loss" "$cfp" train "${common[@]}" --mesh data=2 --steps 4 --profile "$folder/table" --plan "$folder/plan"
    [ -n "$rest" ] && [ "$rest" = "$(ends)" ] || { echo "with a break $rest, without $(ends)"; exit 1; } ;;
  mesh)  # four processes that mpirun starts
    [ -n "$mpiexec" ] || exit 0
    ended 0 "verified over 1 step" "$mpiexec" -n 4 "$cfp" verify "${common[@]}" --mesh data=2,model=2 --steps 1 ;;
  shared)  # one GPU for two processes, if they ask for it
    export CFP_STAND_IN_GPUS=1
    ended 1 "has 2 ranks and 1 GPU that they see, and each rank takes one; .*--share-gpus" \
      bash "$launch" 2 "$cfp" verify "${common[@]}" --mesh data=2 --steps 1
    ended 0 "verified over 1 step" bash "$launch" 2 "$cfp" verify "${common[@]}" --mesh data=2 --steps 1 --share-gpus ;;
  killed)  # the other knows at once, whichever it was
    for victim in 1 0; do
      began=$SECONDS
      ended $((victim == 0 ? 137 : 1)) "rank $victim.* ended without a word" \
        bash "$launch" 2 sh -c '[ "$RANK" = '$victim' ] && { sleep 4; kill -9 $$; } & exec "$@"' sh "$cfp" train "${common[@]}" --mesh data=2 --steps 100000
      [ $((SECONDS - began)) -lt 30 ] || { echo "it took $((SECONDS - began)) s"; exit 1; }
    done ;;
  sweep)  # what two processes measured is a machine to plan for
    ended 0 "written to\|all_reduce" bash "$launch" 2 "$cfp" sweep --backend cuda --mesh gpu=2 --seconds 0.02 --most 4096 --save-machine "$folder/here.json"
    grep -q "free beside contexts, NCCL and libraries" "$folder/here.json"
    ended 0 "simulated\|ms" "$cfp" plan --machine "$folder/here.json" --model "$model" --layers 1 --seq 8 ;;
  wrong)
    ended 2 "--mesh data=3: the mesh has 3 ranks and the launcher started 2 processes" bash "$launch" 2 "$cfp" plan "${common[@]}" --mesh data=3
    ended 2 "the processes were started with different options" bash "$launch" 2 bash -c 'exec "$@" --seed $RANK' run "$cfp" train "${common[@]}" --mesh data=2
    RANK=2 WORLD_SIZE=2 ended 2 "RANK is a whole number from 0 to 1, got: 2" "$cfp" plan "${common[@]}"
    ended 2 "--share-gpus: ranks have GPUs with --backend cuda, not with threads" "$cfp" plan --share-gpus ;;
esac
