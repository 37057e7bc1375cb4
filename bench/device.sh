# device [--out DIR] [--seconds S] [--dry]: checks and measures on a GPU, in stages of at most S (480) seconds that each write a file into DIR
# (else the folder that OUT names, else bench/results) and are not run again where it is. From prebuilt binaries (device_binaries.sh) where they are,
# else built here. --dry: all but the kernels without a GPU, over stand-ins for CUDA's libraries, as small as can be. Sourced by run.sh.
out=${OUT:-bench/results} seconds=480
program=bench_device nccl=device_nccl cfp=cfp more=() few=()
while [ $# -gt 0 ]; do
  case $1 in
    --out) out=${2:?--out DIR}; shift 2 ;;
    --seconds) seconds=${2:?--seconds S}; shift 2 ;;
    --dry)
      program=device_dry nccl=nccl_dry cfp=cfp_with_stand_in; more=(--tiny)
      few=(--model tests/tiny_gpt.json --layers 1 --batch 2 --seq 8 --steps 2 --compare 1); shift ;;
    *) echo "device: unknown option $1" >&2; exit 2 ;;
  esac
done
folder=${CFP_DEVICE_BINARIES:-build/device}
if compgen -G "$folder/*.gz" > /dev/null; then gunzip -f "$folder"/*.gz; fi
if [ ! -x "$folder/$program" ]; then
  . bench/build.sh
  if [ $program = device_dry ]; then
    build_bench solve device_dry nccl_dry cfp_with_stand_in
    folder=build/tests
  else
    build_bench device device_kernels device_nccl cfp
    folder=build/bench
    cp build/tests/device/device_kernels build/tests/device_nccl build/examples/cfp "$folder/"
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
  timeout "$seconds" "$@" || { echo "failed, or not done in $seconds s: $*" >&2; failed=1; }
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
stage "$name.cfp.txt" bash bench/device_program.sh "$folder/$cfp" "$name.cfp.txt" "${few[@]}"
if [ $program = bench_device ] && python3 -c "import torch" 2> /dev/null; then
  stage "$name.torch.json" python3 bench/torch_gpt2.py "$name.torch.json"
  if [ -e "$name.torch.json" ]; then more=(--torch "$name.torch.json"); fi
fi
measured step
measured memory
measured instructions
if [ $program = bench_device ]; then stage "$name.kernels.txt" bash -c kernels; fi
measured prediction
measured segments
exit $failed
