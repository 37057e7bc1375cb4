#!/usr/bin/env bash
# run.sh MODE SOURCE_DIR WORK_DIR CXX: gets the library as MODE says, builds the consumer in WORK_DIR and runs it. CUDACXX names an nvcc.
set -euo pipefail
mode=$1 source=$(realpath "$2") work=$3 cxx=$4
here=$(realpath "$(dirname "$0")")
rm -rf "$work"
mkdir -p "$work"
work=$(realpath "$work")
unset CXXFLAGS CMAKE_BUILD_TYPE DESTDIR  # a consumer of our choice, not of this shell's

# A machine that has none of the library's needs.
bare=(-DCMAKE_FIND_ROOT_PATH="$work/nothing" -DCMAKE_FIND_ROOT_PATH_MODE_INCLUDE=ONLY -DCMAKE_FIND_ROOT_PATH_MODE_LIBRARY=ONLY)

configure() {  # configure FOLDER OPTIONS...
  local folder=$1
  shift
  cmake --no-warn-unused-cli -S "$here" -B "$work/$folder" -DCMAKE_CXX_COMPILER="$cxx" -DCFP_FROM="$mode" \
    -DCFP_SOURCE_DIR="$source" "$@"
}
build_and_run() {  # build_and_run FOLDER OPTIONS...
  configure "$@"
  cmake --build "$work/$1"
  "$work/$1/consumer"
}
must_refuse() {  # must_refuse WORDS FOLDER OPTIONS...: configuring fails, and says WORDS (CMake breaks lines where it likes)
  local words=$1 said
  shift
  if said=$(configure "$@" 2>&1); then
    echo "configuring with ${*:2} passed and should not have" >&2
    exit 1
  fi
  if ! tr -s ' \n' ' ' <<< "$said" | grep -qF -- "$words"; then
    echo "$said" >&2
    echo "this does not say: $words" >&2
    exit 1
  fi
  echo "refused as it should be: $words"
}

case $mode in
  subdirectory | fetch_content)
    build_and_run core "${bare[@]}"
    build_and_run all -DCFP_COMPONENT=cfp
    [ -z "${CUDACXX:-}" ] || build_and_run cuda -DCFP_COMPONENT=cuda
    ;;
  install)
    number() { sed -n "s/^#define CFP_VERSION_$1 //p" "$source/include/cfp/version.hpp"; }
    major=$(number MAJOR) minor=$(number MINOR)
    cmake -S "$source" -B "$work/library" -DCMAKE_CXX_COMPILER="$cxx" -DCFP_BUILD_EXAMPLES=OFF -DCFP_BUILD_TESTS=OFF -DCFP_KERNELS=OFF "${bare[@]}"
    cmake --install "$work/library" --prefix "$work/staged"
    mv "$work/staged" "$work/installed"  # nothing in it may know where it was
    diff -r "$source/include" "$work/installed/include"
    if grep -rF -e "$source" -e "$work" "$work/installed"; then
      echo "an installed file knows a folder of the building machine" >&2
      exit 1
    fi
    export cfp_ROOT=$work/installed
    build_and_run core "${bare[@]}" -DCFP_VERSION="$major.$minor"
    build_and_run all -DCFP_VERSION="$major.$minor" -DCFP_COMPONENT=cfp
    [ -z "${CUDACXX:-}" ] || build_and_run cuda -DCFP_VERSION="$major.$minor" -DCFP_COMPONENT=cuda
    for other in $((minor - 1)) $((minor + 1)); do
      [ "$other" -lt 0 ] || must_refuse "compatible with requested version \"$major.$other\"" "version$other" -DCFP_VERSION="$major.$other"
    done
    must_refuse "component kernels lacks" no_kernels -DCFP_COMPONENT=kernels
    must_refuse "component gpus lacks" no_gpus -DCFP_COMPONENT=gpus
    must_refuse "there is no component nonsense" unknown -DCFP_COMPONENT=nonsense
    must_refuse "component model lacks the Debian packages libboost-dev" model "${bare[@]}" -DCFP_COMPONENT=model
    must_refuse "component host lacks the Debian packages libboost-dev, libopenblas-dev, libthrust-dev, librandom123-dev" \
      host "${bare[@]}" -DCFP_COMPONENT=host
    must_refuse "librandom123-dev, nvidia-cuda-toolkit, libnccl-dev" no_cuda "${bare[@]}" -DCFP_COMPONENT=cuda
    ;;
  raw_include)
    compilers=("$cxx")
    command -v clang++ > /dev/null && compilers+=(clang++)
    for compiler in "${compilers[@]}"; do
      "$compiler" -std=c++20 -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror -I "$source/include" \
        "$here/main.cpp" "$here/second.cpp" -o "$work/consumer"
      echo "$compiler: $("$work/consumer")"
    done
    ;;
  *)
    echo "unknown mode $mode" >&2
    exit 2
    ;;
esac
