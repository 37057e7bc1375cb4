#!/usr/bin/env bash
# generated.sh COUNT [SEED]: builds, then holds COUNT operators of random sizes under random splits, and COUNT / 10 random
# models under random plans, against one rank, in values and gradients. Each draw has a seed; the first is SEED, or 1.
set -euo pipefail
cd "$(dirname "$0")/.."
[[ ${1:-} =~ ^[1-9][0-9]*$ && ${2:-1} =~ ^[0-9]+$ ]] || { echo "usage: generated.sh COUNT [SEED]" >&2; exit 2; }
. tests/packages.sh
install_packages
quietly build/configure.log cmake -S . -B build -G Ninja
quietly build/build.log cmake --build build --target runtime_training
CFP_GENERATED=$1 CFP_SEED=${2:-1} build/tests/runtime_training -\# "[#generated]"
