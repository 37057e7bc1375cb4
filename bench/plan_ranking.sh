# Plans priced and run on CPU ranks of this machine. Sourced by run.sh.
. bench/build.sh
build_bench plan_ranking
build/bench/bench_plan_ranking "$@"
