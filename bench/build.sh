bench_packages=()  # what a bench needs beside the rest
bench_build=${bench_build:-build} bench_options=()  # where it is built, and how
# build_bench NAME [TARGET...]: builds bench/NAME.cpp and these targets, installing what is missing. Sourced.
build_bench() {
  . tests/packages.sh
  packages+=("${bench_packages[@]}")
  install_packages
  quietly "$bench_build/configure.log" cmake -S . -B "$bench_build" -G Ninja "${bench_options[@]}"
  quietly "$bench_build/build.log" cmake --build "$bench_build" --target "bench_$1" "${@:2}"
}
