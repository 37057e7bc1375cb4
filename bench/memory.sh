# Plans within a limit of memory, on described machines and on CPU ranks. Sourced by run.sh.
. bench/build.sh
build_bench memory
build/bench/bench_memory "$@"
