# Described machines against published figures. Sourced by run.sh.
. bench/build.sh
build_bench machines
build/bench/bench_machines "$@"
