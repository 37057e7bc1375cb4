# Plans within a limit of memory, on described machines and on CPU ranks; with --plot FILE [MODEL MACHINE] in their place
# what memory is worth to one model, as a picture. Sourced by run.sh.
. bench/build.sh
if [ "${1:-}" != --plot ]; then
  build_bench memory
  build/bench/bench_memory "$@"
  return
fi
plot=${2:?--plot takes a file} model=${3:-llama-3-8b} machine=${4:-a100-pcie-4}
bench_packages=(gnuplot-nox)
build_bench memory cfp
build/examples/cfp explain --model "$model" --machine "$machine" --summary build/curve.json
# A line for each point: GiB, milliseconds, whether it fits.
awk -F'[:,]' '/"curve"/ { on = 1 } on && /"step_ms"/ { ms = $2 } on && /"peak_bytes"/ { bytes = $2 } on && /"fits"/ { print bytes / 2 ^ 30, ms, $2 }' \
  build/curve.json > build/curve.txt
gnuplot -e "data='build/curve.txt'; output='$plot'; what='$model on $machine'" bench/memory.gp
