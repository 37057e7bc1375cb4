# Schedules of a pipeline, predicted and measured on CPU ranks of this machine. Sourced by run.sh.
. bench/build.sh
build_bench pipeline
build/bench/bench_pipeline "$@"
