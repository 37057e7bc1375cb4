#!/usr/bin/env bash
# run.sh [COMMAND] OPTIONS...: installs what is missing, builds the program cfp, and runs it: `cfp run` unless said otherwise.
set -euo pipefail
cd "$(dirname "$0")/.."
command=run
case ${1:-} in run | plan | verify | train | compare | analyse | explain | report | sweep | schedule | export) command=$1; shift ;; esac
. tests/packages.sh
install_packages
gpu=-UCFP_WITH_CUDA
nvidia-smi -L > /dev/null 2>&1 || gpu=-DCFP_WITH_CUDA=OFF  # kernels for one take longest to compile, and would run nowhere here
echo "building"
quietly build/configure.log cmake -S . -B build -G Ninja $gpu
quietly build/build.log cmake --build build --target cfp
exec build/examples/cfp "$command" "$@"
