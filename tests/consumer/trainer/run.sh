#!/usr/bin/env bash
# run.sh FOLDER CXX [NVCC]: builds the trainer in FOLDER and compares a mesh of eight devices with one device that does
# it all. With NVCC also on GPUs; where there are none it is built only. CUDA_HOME says where NCCL is, if not beside nvcc.
set -euo pipefail
here=$(realpath "$(dirname "$0")") work=$1 cxx=$2 nvcc=${3:-}
include=$here/../../../include
mkdir -p "$work"
cd "$work"

# Sums in another order: some hundred terms, rounded at 6e-8 each, in each of a few steps. In double it is the printed
# digits that round.
float=2e-5 double=1e-8

both() {  # both COMMAND... -- COMMAND...: at the same time
  local first=()
  while [ "$1" != -- ]; do first+=("$1") && shift; done
  shift
  "${first[@]}" &
  local job=$!
  "$@"
  wait "$job"
}
differ() {  # differ TOLERANCE ONE OTHER: the same words, numbers within the tolerance; prints the largest difference
  awk -v most="$1" -v what="$2 and $3" '
    function off(a, b,   d, scale) {
      scale = a < 0 ? -a : a
      if ((b < 0 ? -b : b) > scale) scale = b < 0 ? -b : b
      if (scale < 1e-6) scale = 1e-6  # gradients that are zero but for rounding
      d = a - b
      return (d < 0 ? -d : d) / scale
    }
    function fail(why) { print what ": " why > "/dev/stderr"; failed = 1; exit 1 }
    !/^(step|weights|gradient) / { next }
    NR == FNR { expected[++lines] = $0; next }
    {
      if (split(expected[++line], want) != NF) fail("line " line " reads: " $0)
      for (i = 1; i <= NF; ++i) {
        number = $i ~ /^-?[0-9.]+(e[-+]?[0-9]+)?$/ && want[i] ~ /^-?[0-9.]+(e[-+]?[0-9]+)?$/
        if (!number && $i != want[i]) fail("line " line " reads: " $0 ", not " expected[line])
        if (!number) continue
        if ((d = off($i, want[i])) > worst) worst = d
        if (d > most) fail($0 " where the other says " expected[line])
      }
    }
    END {
      if (!failed && (line != lines || lines < 20)) fail("too few lines")
      if (!failed) printf "%.1e", worst
    }' "$2" "$3"
}

flags=(-std=c++20 -O1 -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror -pthread -I "$include")
flags+=("$here/threads.cpp")
both "$cxx" -DTINY "${flags[@]}" -o mesh -- "$cxx" -DTINY -DALONE "${flags[@]}" -o alone
"$cxx" "${flags[@]}" -fsyntax-only  # the sizes of a real one
for program in mesh alone; do
  "./$program" > "$program.float"
  "./$program" --double > "$program.double"
  "./$program" --gradients > "$program.gradients"
done
in_float=$(differ $float mesh.float alone.float)
in_double=$(differ $double mesh.double alone.double)
gradients=$(differ $double mesh.gradients alone.gradients)

gpu="not built for GPUs"
if [ -n "$nvcc" ]; then
  cuda=${CUDA_HOME:-$(dirname "$(dirname "$(realpath "$(command -v "$nvcc")")")")}
  libraries=(-L"$cuda/lib64" -L"$cuda/lib" -lnccl)
  flags=(-std=c++20 -arch=sm_90 --extended-lambda -I "$include" -I "$cuda/include" "$here/trainer.cu")
  both "$nvcc" -DTINY "${flags[@]}" "${libraries[@]}" -o gpus -- "$nvcc" "${flags[@]}" -c -o large.o
  code=0
  LD_LIBRARY_PATH=$cuda/lib64:$cuda/lib:${LD_LIBRARY_PATH:-} ./gpus --ranks 8 > gpus.float || code=$?
  case $code in
    0) gpu="GPUs as threads within $float ($(differ $float gpus.float mesh.float))" ;;
    77) gpu="built for GPUs, of which there are none here" ;;
    *) exit "$code" ;;
  esac
fi

count() { grep -c "^$1" "mesh.$2"; }
echo "mesh as one device: $(count step float) losses and $(count weights float) weights in float within $float" \
  "($in_float), in double within $double ($in_double), $(count gradient gradients) gradients ($gradients)," \
  "$(tail -n 1 mesh.gradients); $gpu"
