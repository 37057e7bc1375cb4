# device [--out DIR] [--dry]: checks and measures on a GPU, in stages of at most eight minutes that each write a file into DIR (else the
# folder that OUT names, else bench/results) and are not run again where it is. From prebuilt binaries (device_binaries.sh) where they are,
# else built here. --dry: all but the kernels without a GPU, over stand-ins for CUDA's libraries, as small as can be. Sourced by run.sh.
out=${OUT:-bench/results}
program=bench_device nccl=device_nccl more=()
while [ $# -gt 0 ]; do
  case $1 in
    --out) out=${2:?--out DIR}; shift 2 ;;
    --dry) program=device_dry nccl=nccl_dry; more=(--tiny); shift ;;
    *) echo "device: unknown option $1" >&2; exit 2 ;;
  esac
done
folder=${CFP_DEVICE_BINARIES:-build/device}
if compgen -G "$folder/*.gz" > /dev/null; then gunzip -f "$folder"/*.gz; fi
if [ ! -x "$folder/$program" ]; then
  . bench/build.sh
  if [ $program = device_dry ]; then
    build_bench solve device_dry nccl_dry
    folder=build/tests
  else
    build_bench device device_kernels device_nccl
    folder=build/bench
    cp build/tests/device/device_kernels build/tests/device_nccl "$folder/"
  fi
fi
export LD_LIBRARY_PATH=$PWD/$folder${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}  # libraries that libraries need
# Libraries that no loader knows of: CUDA's come with Python's packages, too.
for of in $(python3 -c 'import glob, site; print(*[f for p in site.getsitepackages() for f in glob.glob(p + "/nvidia/*/lib")])' 2> /dev/null); do
  LD_LIBRARY_PATH+=:$of
done
missing=$(ldd "$folder/$program" | awk '/not found/ { printf " %s", $1 }')
[ -z "$missing" ] || { echo "device: these libraries are not on this machine:$missing; install them, or set LD_LIBRARY_PATH to where they are" >&2; exit 3; }
name=$("$folder/$program" --gpu) || exit
if [ $program = device_dry ]; then export CFP_STAND_IN_FOLDER=$(mktemp -d); trap 'rm -rf "$CFP_STAND_IN_FOLDER"' EXIT; fi
echo "$name"
name=${name%%,*}
name=$out/${name// /-}
mkdir -p "$out"
failed=0
stage() {  # stage FILE COMMAND...: unless FILE is there
  local file=$1 began=$SECONDS
  shift
  if [ -e "$file" ]; then
    echo "$file is there: not run again"
    return
  fi
  timeout 480 "$@" || { echo "failed, or not done in 8 minutes: $*" >&2; failed=1; }
  echo "$((SECONDS - began)) s"
}
measured() { stage "$name.$1.json" "$folder/$program" --stage "$1" --out "$out" "${more[@]}"; }
kernels() {  # every kernel, attention and whole models against the host
  "$folder/device_kernels" > "$name.kernels.part" || { cat "$name.kernels.part"; return 1; }
  mv "$name.kernels.part" "$name.kernels.txt"
}
export -f kernels
export folder name
measured check
stage "$name.nccl.json" bash bench/nccl.sh "$folder/$nccl" "$name.nccl.json"
if [ $program = bench_device ] && python3 -c "import torch" 2> /dev/null; then
  stage "$name.torch.json" python3 bench/torch_gpt2.py "$name.torch.json"
  if [ -e "$name.torch.json" ]; then more=(--torch "$name.torch.json"); fi
fi
measured step
measured instructions
if [ $program = bench_device ]; then stage "$name.kernels.txt" bash -c kernels; fi
measured prediction
measured segments
exit $failed
