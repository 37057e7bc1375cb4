# What stages on meshes of different sizes would gain, by Alpa's formula. Sourced by run.sh.
. bench/build.sh
build_bench unequal_stages
build/bench/bench_unequal_stages "$@"
