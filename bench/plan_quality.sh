# The found plan beside those people use and Alpa's, on described machines. Sourced by run.sh.
. bench/build.sh
build_bench plan_quality
build/bench/bench_plan_quality "$@"
