#!/usr/bin/env bash
# device_binaries.sh [FOLDER]: builds what `bench/run.sh device` needs and puts it there (build/device unless said), for a machine that has a
# GPU and no compilers: copy the tree with that folder. CUDA's libraries are linked dynamically and must be on that machine; CPU libraries go along.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=${1:-build/device}
. bench/build.sh
build_bench device device_kernels device_nccl
mkdir -p "$folder"
cp build/bench/bench_device build/tests/device/device_kernels build/tests/device_nccl "$folder/"
ldd build/bench/bench_device build/tests/device/device_kernels build/tests/device_nccl | awk '/openblas|gfortran|quadmath/ {print $3}' | sort -u | while read -r library; do cp -L "$library" "$folder/"; done
strip "$folder/bench_device" "$folder/device_kernels" "$folder/device_nccl"
rm -f "$folder"/*.gz
gzip "$folder"/*
du -sh "$folder" | awk '{print $2 ": " $1}'
