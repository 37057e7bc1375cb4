# Installs what the examples and tests need, with apt, if it is missing. Sourced.
packages=(g++ cmake ninja-build libboost-dev catch2 libthrust-dev libopenblas-dev nlohmann-json3-dev libcli11-dev librandom123-dev libprotozero-dev)

# OpenBLAS takes its slowest kernels on a processor it does not know, as 0.3.21 does where that is newer than itself.
if [ -z "${OPENBLAS_CORETYPE:-}" ] && grep -qsm1 -w avx512f /proc/cpuinfo; then export OPENBLAS_CORETYPE=SkylakeX; fi

install_packages() {
  local missing=() p
  if ! command -v dpkg >/dev/null || ! command -v apt-get >/dev/null; then
    echo "no apt here; install these packages yourself (or their like): ${packages[*]}" >&2
    [ -n "${CFP_SKIP_PACKAGES:-}" ] && return 0
    echo "then run again with CFP_SKIP_PACKAGES=1" >&2
    exit 2
  fi
  for p in "${packages[@]}"; do
    dpkg -s "$p" >/dev/null 2>&1 || missing+=("$p")
  done
  [ ${#missing[@]} -eq 0 ] && return 0
  echo "installing ${missing[*]}"
  local sudo=()
  [ "$(id -u)" -eq 0 ] || sudo=(sudo)
  "${sudo[@]}" apt-get update -qq >/dev/null
  DEBIAN_FRONTEND=noninteractive "${sudo[@]}" apt-get install -y -qq "${missing[@]}" >/dev/null
}

# quietly LOG COMMAND...: prints the output only if the command fails
quietly() {
  local log=$1
  shift
  mkdir -p "$(dirname "$log")"
  if ! "$@" > "$log" 2>&1; then
    cat "$log" >&2
    exit 1
  fi
}
