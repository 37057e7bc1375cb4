#!/usr/bin/env bash
# Installs what is missing, builds, runs every test; sanitizers first, so that the last lines are ctest's summary. Some tests take a part
# of their cases here; all of them: tests/all_cases.sh.
set -euo pipefail
cd "$(dirname "$0")/.."
. tests/packages.sh
packages+=(clang libclang-rt-dev coinor-libcbc-dev libopenmpi-dev openmpi-bin libboost-context-dev clang-format-14 python3-numpy)  # the second compiler of the compile-time tests, and its fuzzer; the solver to compare ours with; ranks as processes; emulated threads of GPUs; what families compute
if grep -qx 'ID=debian' /etc/os-release 2>/dev/null; then packages+=(chromium python3-websocket); fi  # reports are opened; elsewhere it is a snap, and that test is skipped
install_packages

configure() {  # configure FOLDER OPTIONS...
  local folder=$1
  shift
  quietly "$folder/configure.log" cmake -S . -B "$folder" -G Ninja "$@"
}
failed=0
done_in() { echo "$1: $SECONDS s since the start"; }

# By Clang, which compiles what is sanitized in half of GCC's time.
echo "building with the address and undefined-behaviour sanitizers"
configure build/asan -DCMAKE_CXX_COMPILER=clang++ -DCMAKE_BUILD_TYPE=Debug -DCFP_SANITIZE=address,undefined -DCFP_NATIVE=OFF -DCFP_TESTS="~[heavy]"
quietly build/asan/build.log cmake --build build/asan --target runtime_tests cfp
done_in "built"
ctest --test-dir build/asan -R '^(runtime|example.gpt.data_2$)' --output-on-failure -j2 || failed=1
done_in "tested"

echo "building with the thread sanitizer"
configure build/tsan -DCMAKE_CXX_COMPILER=clang++ -DCMAKE_BUILD_TYPE=Debug -DCFP_SANITIZE=thread -DCFP_NATIVE=OFF
quietly build/tsan/build.log cmake --build build/tsan --target runtime_ranks
done_in "built"
ctest --test-dir build/tsan -R '^runtime.(threads|streams|plans|staged)$' --output-on-failure -j1 || failed=1
done_in "tested"

echo "building"
gpu=ON
nvidia-smi -L > /dev/null 2>&1 || gpu=OFF  # what is compiled for one runs nowhere
configure build -UCFP_WITH_CUDA -DCFP_GPU_OPTIMISE=$gpu
quietly build/build.log cmake --build build
done_in "built"
ctest --test-dir build --output-on-failure -j2 || failed=1
done_in "tested"
exit $failed
