#!/usr/bin/env bash
# all_cases.sh [NAME]: builds, then runs the tests that take a part of their cases elsewhere, or those whose names match NAME,
# with all of them.
set -euo pipefail
cd "$(dirname "$0")/.."
. tests/packages.sh
packages+=(coinor-libcbc-dev)
install_packages
quietly build/configure.log cmake -S . -B build -G Ninja
quietly build/build.log cmake --build build --target runtime_tests
CFP_ALL=1 ctest --test-dir build --output-on-failure -R "${1:-^(runtime[.]|consumer[.]trainer[.].*mistakes)}"
