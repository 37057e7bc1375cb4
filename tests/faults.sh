#!/usr/bin/env bash
# faults.sh COUNT [SEED]: builds, then trains COUNT times on threads, MPI processes and GPUs of the stand-in, each time with one fault at a
# random moment (an instruction, a collective, a write): a throw, kill -9, a stop longer than the deadline, a full disk, a write in two pieces.
# Each must end in time, name the rank, and leave files that are the old or the new ones, from which training goes on as without a break.
set -euo pipefail
cd "$(dirname "$0")/.."
[[ ${1:-} =~ ^[1-9][0-9]*$ && ${2:-1} =~ ^[0-9]+$ ]] || { echo "usage: faults.sh COUNT [SEED]" >&2; exit 2; }
. tests/packages.sh
packages+=(libopenmpi-dev openmpi-bin libboost-context-dev)
install_packages
quietly build/configure.log cmake -S . -B build -G Ninja
quietly build/build.log cmake --build build --target faults
exec build/tests/faults "$1" "${2:-1}"
