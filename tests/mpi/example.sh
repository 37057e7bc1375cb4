#!/usr/bin/env bash
# example.sh CASE MPIEXEC CFP MODEL: the example on processes, where something is wrong, or a state goes from one mesh to another.
set -euo pipefail
case=$1 mpiexec=$2 cfp=$3 model=$4
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
common=(--model "$model" --batch 4 --seq 16 --compare 0)

# refused CODE WORDS COMMAND...: it must end with that code and say that, once
refused() {
  local code=$1 words=$2 got=0
  shift 2
  timeout 100 "$@" > "$folder/out" 2>&1 || got=$?
  if [ "$got" -ne "$code" ] || [ "$(grep -c -- "$words" "$folder/out")" -ne 1 ]; then
    echo "ended with $got, expected $code and once '$words' in:"
    cat "$folder/out"
    exit 1
  fi
}

case $case in
  wrong_mesh)
    refused 2 "^--mesh data=3: the mesh has 3 ranks and the job 2 processes; start it with mpirun -n 3" \
      "$mpiexec" -n 2 "$cfp" run --backend mpi "${common[@]}" --mesh data=3 ;;
  other_options)
    refused 2 "the processes were started with different options" \
      "$mpiexec" -n 1 "$cfp" run --backend mpi "${common[@]}" --mesh data=2 : -n 1 "$cfp" run --backend mpi "${common[@]}" --mesh data=2 --seed 2 ;;
  other_file)
    mkdir "$folder/a" "$folder/b"
    cp "$model" "$folder/a/m.json"
    sed 's/64/128/' "$model" > "$folder/b/m.json"
    common[1]=m.json
    refused 2 "the processes read different files for the model (m.json)" \
      "$mpiexec" -n 1 -wdir "$folder/a" "$cfp" run --backend mpi "${common[@]}" : -n 1 -wdir "$folder/b" "$cfp" run --backend mpi "${common[@]}" ;;
  no_place)  # one process finds it, all end
    refused 2 "^--summary $folder/none/summary: cannot be written: No such file or directory" \
      "$mpiexec" -n 2 "$cfp" train --backend mpi --model "$model" --batch 4 --seq 16 --steps 100000 --summary "$folder/none/summary"
    refused 2 "^--text $folder: it is a directory, give a file" \
      "$mpiexec" -n 2 "$cfp" train --backend mpi --model "$model" --batch 4 --seq 16 --steps 100000 --text "$folder" ;;
  killed)
    refused 137 "signal 9" "$mpiexec" -n 2 sh -c '[ "$OMPI_COMM_WORLD_RANK" = 1 ] && { sleep 2; kill -9 $$; } & exec "$@"' sh \
      "$cfp" run --backend mpi "${common[@]}" --steps 100000 ;;
  state)  # trained on two processes, gone on with on two threads, as without a break
    "$mpiexec" -n 2 "$cfp" run --backend mpi "${common[@]}" --steps 4 --save-state "$folder/s" --save-plan "$folder/plan" > "$folder/first"
    "$cfp" run "${common[@]}" --steps 4 --load-state "$folder/s" --plan "$folder/plan" > "$folder/rest"
    "$cfp" run "${common[@]}" --plan "$folder/plan" --steps 8 > "$folder/whole"
    ends() { sed -n 's/^verified over .* -> \([0-9.]*\),.*/\1/p' "$1"; }
    [ -n "$(ends "$folder/rest")" ] && [ "$(ends "$folder/rest")" = "$(ends "$folder/whole")" ] || { cat "$folder"/{first,rest,whole}; exit 1; }
    # Weights of a checkpoint, which each process reads and the first one writes: as on threads, to the bit.
    weights=("${common[@]:0:6}" --vocabulary 512 --plan "$folder/plan" --steps 2)
    "$cfp" train "${weights[@]}" --save-weights "$folder/w" > "$folder/out"
    "$cfp" train "${weights[@]}" --load-weights "$folder/w" --save-weights "$folder/threads" > "$folder/out"
    "$mpiexec" -n 2 "$cfp" train --backend mpi "${weights[@]}" --load-weights "$folder/w" --save-weights "$folder/processes" > "$folder/out"
    cmp "$folder/threads" "$folder/processes" ;;
  staged)  # a plan in stages that was found for a machine; a process that is killed as it trains
    small=(--model "$model" --layers 4 --batch 8 --seq 16 --micro-batches 4 --type float32)
    for stages in 2 4; do
      "$cfp" plan "${small[@]}" --machine a100-pcie-4 --stages $stages --save-plan "$folder/plan" > "$folder/out"
      mesh=$(sed -n 's/^  --mesh \(stage=[^ ]*\) .*/\1/p' "$folder/out")
      "$mpiexec" -n 4 "$cfp" run --backend mpi "${small[@]}" --mesh "$mesh" --plan "$folder/plan" --steps 3 --compare 2 > "$folder/out"
      grep -q "^verified over 3 steps" "$folder/out" || { cat "$folder/out"; exit 1; }
    done
    refused 137 "signal 9" "$mpiexec" -n 4 sh -c '[ "$OMPI_COMM_WORLD_RANK" = 2 ] && { sleep 2; kill -9 $$; } & exec "$@"' sh \
      "$cfp" run --backend mpi "${small[@]}" --compare 0 --mesh "$mesh" --plan "$folder/plan" --steps 100000 ;;
esac
