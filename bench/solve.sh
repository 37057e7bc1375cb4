# How long the exact solver takes, and what others answer on the same graphs. Sourced by run.sh.
. bench/build.sh
bench_packages=(coinor-libcbc-dev)  # the integer program it is compared with
build_bench solve
build/bench/bench_solve "$@"
