#!/usr/bin/env bash
# device_binaries.sh [FOLDER]: builds what `bench/run.sh device` needs and puts it there (build/device unless said), for a machine that has a
# GPU and no compilers: copy the tree with that folder. CUDA's libraries are linked dynamically and must be on that machine; CPU libraries go along.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=${1:-build/device} bench_build=${bench_build:-build/packed}
. bench/build.sh
bench_options=(-DCFP_NATIVE=OFF -DCMAKE_DISABLE_FIND_PACKAGE_MPI=ON)  # for any processor; launchers other than mpirun need no MPI
build_bench device device_kernels device_nccl cfp
mkdir -p "$folder"
programs=("$bench_build"/{bench/bench_device,tests/device/device_kernels,tests/device_nccl,examples/cfp})
cp "${programs[@]}" "$folder/"
ldd "${programs[@]}" | awk '/openblas|gfortran|quadmath/ {print $3}' | sort -u | while read -r library; do cp -L "$library" "$folder/"; done
strip "${programs[@]/#*\//$folder/}"
rm -f "$folder"/*.gz
gzip "$folder"/*
du -sh "$folder" | awk '{print $2 ": " $1}'
