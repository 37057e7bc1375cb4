# Tracing, differentiating, blocking and segmenting the training graphs of public models. Sourced by run.sh.
. bench/build.sh
build_bench analysis
build/bench/bench_analysis "$@"
