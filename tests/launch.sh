#!/usr/bin/env bash
# launch.sh N COMMAND...: starts N processes as torchrun starts them on one machine, and ends as the first of them (by rank) that does not
# end with 0. What they say goes into the files out.RANK of the folder that LAUNCH_OUT names, else to standard output, by rank.
set -uo pipefail
n=$1
shift
out=${LAUNCH_OUT:-}
[ -n "$out" ] || { out=$(mktemp -d); trap 'rm -rf "$out"' EXIT; }
export WORLD_SIZE=$n LOCAL_WORLD_SIZE=$n MASTER_ADDR=${MASTER_ADDR:-127.0.0.1} MASTER_PORT=${MASTER_PORT:-$((20000 + RANDOM % 12000))}
pids=() code=0
for ((r = 0; r < n; ++r)); do
  RANK=$r LOCAL_RANK=$r "$@" > "$out/out.$r" 2>&1 &
  pids+=($!)
done
for ((r = 0; r < n; ++r)); do
  got=0
  wait "${pids[r]}" || got=$?
  [ "$code" -ne 0 ] || code=$got
done
[ -n "${LAUNCH_OUT:-}" ] || cat "$out"/out.*
exit $code
