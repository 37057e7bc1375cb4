bench_packages=()  # what a bench needs beside the rest
# build_bench NAME [TARGET...]: builds bench/NAME.cpp and these targets, installing what is missing. Sourced.
build_bench() {
  . tests/packages.sh
  packages+=("${bench_packages[@]}")
  install_packages
  quietly build/configure.log cmake -S . -B build -G Ninja
  quietly build/build.log cmake --build build --target "bench_$1" "${@:2}"
}
