#!/usr/bin/env bash
# your_model.sh BUILD WORK CXX INCLUDE FLAGS...: the project of the documentation, with what BUILD has installed, and from headers alone.
set -euo pipefail
build=$1 work=$2 cxx=$3 include=$4
shift 4
here=$(realpath "$(dirname "$0")")/your_model
rm -rf "$work"
mkdir -p "$work"
cmake --install "$build" --prefix "$work/installed" > "$work/install.log"
cmake -S "$here" -B "$work/mixer" -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER="$cxx" -Dcfp_ROOT="$work/installed"
cmake --build "$work/mixer"
cd "$work"
"$work/mixer/mixer" "$here/../../../examples/machines/a100-pcie-4.json" | tee "$work/out"
grep -q "plan for mesh" "$work/out"
grep -q "verified over 10 steps" "$work/out"
grep -q "trained steps 1 to 100" "$work/out"
for file in mixer_plan.json mixer_plan.hpp mixer.safetensors; do [ -s "$file" ] || { echo "no $file"; exit 1; }; done
# Its checks, as a test of its own: they end well, and print nothing. Optimised is the first program alone.
sed 's/mixer/checks/g; s/main.cpp/checks.cpp/' "$here/CMakeLists.txt" > CMakeLists.txt
cp "$here/checks.cpp" "$here/mixer.hpp" .
cmake -S . -B checks -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG= -DCMAKE_CXX_COMPILER="$cxx" -Dcfp_ROOT="$work/installed"
cmake --build checks
checks/checks > out
[ ! -s out ]
# The plan is C++ that the compiler checks.
printf '#include "mixer_plan.hpp"\nint main() {}\n' > plan.cpp
"$cxx" -std=c++20 -Wall -Wextra -Werror -fsyntax-only -I "$include" plan.cpp
# The program that was installed finds its models.
[ ! -x installed/bin/cfp ] || installed/bin/cfp analyse --model gpt2 | grep -q "operators"
# README's program, with what was installed.
sed 's/mixer/readme/g; s/main.cpp/readme.cpp/' "$here/CMakeLists.txt" > CMakeLists.txt
cp "$here/readme.cpp" .
cmake -S . -B readme -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG= -DCMAKE_CXX_COMPILER="$cxx" -Dcfp_ROOT="$work/installed"
cmake --build readme
readme/readme | tee out
grep -q "verified over 10 steps" out
# The same with GPUs for ranks, where they were built; without one it says so.
if [ -e installed/lib/libcfp_gpus.a ]; then
  sed 's/mixer/gpu/g; s/main.cpp/gpu.cpp/; s/kernels/gpus/' "$here/CMakeLists.txt" > CMakeLists.txt
  sed 's|#include <iostream>|#include <cfp/backend/gpus.hpp>\n&|; s|{.mesh = "data=2"}|{.mesh = "data=1", .on = cfp::gpus}|' "$here/readme.cpp" > gpu.cpp
  grep -q "on = cfp::gpus}" gpu.cpp
  cmake -S . -B gpu -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG= -DCMAKE_CXX_COMPILER="$cxx" -Dcfp_ROOT="$work/installed"
  cmake --build gpu
  { gpu/gpu || true; } 2>&1 | tee out
  grep -qE "no GPU|verified over 10 steps" out
fi
# From headers alone the same program compiles too, and asks for none of CUDA's.
"$cxx" -std=c++20 -Wall -Wextra -Werror -fsyntax-only -MD -MF headers -I "$include" "$@" "$here/main.cpp"
if grep -E 'thrust/system/cuda/|cuda_runtime' headers; then exit 1; fi
