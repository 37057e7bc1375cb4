#!/usr/bin/env bash
# run.sh [gpt|llama|moe|t5] OPTIONS...: installs what is missing, builds, and runs that example (gpt unless said).
set -euo pipefail
cd "$(dirname "$0")/.."
model=gpt
case ${1:-} in gpt | llama | moe | t5) model=$1; shift ;; esac
. tests/packages.sh
install_packages
echo "building"
quietly build/configure.log cmake -S . -B build -G Ninja
quietly build/build.log cmake --build build --target "$model"
exec "build/examples/$model" "$@"
