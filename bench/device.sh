# Checks and measures on a GPU: from prebuilt binaries (device_binaries.sh) where they are, else built here. Sourced by run.sh.
folder=${CFP_DEVICE_BINARIES:-build/device}
cases=$folder/device_kernels
if compgen -G "$folder/*.gz" > /dev/null; then gunzip -f "$folder"/*.gz; fi
if [ ! -x "$folder/bench_device" ] || [ ! -x "$cases" ]; then
  . bench/build.sh
  build_bench device device_kernels
  folder=build/bench
  cases=build/tests/device/device_kernels
fi
if ! "$folder/bench_device" --gpu; then exit 3; fi
echo "Every kernel, attention and whole models against the host"
"$cases"
more=()
torch=$(mktemp)
trap 'rm -f "$torch"' EXIT
if python3 -c "import torch" 2>/dev/null; then
  echo "PyTorch, the same step"
  python3 bench/torch_gpt2.py "$torch" && more=(--torch "$torch")
fi
"$folder/bench_device" "${more[@]}" "$@"
