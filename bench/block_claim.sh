# The best plan over blocks against the best over operators. Sourced by run.sh.
. bench/build.sh
build_bench block_claim
build/bench/bench_block_claim "$@"
