#!/usr/bin/env bash
# Installs what is missing, builds, and runs examples/gpt with the options given.
set -euo pipefail
cd "$(dirname "$0")/.."
. tests/packages.sh
install_packages
echo "building"
quietly build/configure.log cmake -S . -B build -G Ninja
quietly build/build.log cmake --build build --target gpt
exec build/examples/gpt "$@"
