# How long plans take to find, stage by stage. Sourced by run.sh.
. bench/build.sh
build_bench scale
build/bench/bench_scale "$@"
