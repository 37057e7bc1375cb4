# Checks and measures on a GPU: from prebuilt binaries (device_binaries.sh) where they are, else built here. Sourced by run.sh.
folder=${CFP_DEVICE_BINARIES:-build/device}
if [ ! -x "$folder/bench_device" ]; then
  . bench/build.sh
  build_bench device
  folder=build/bench
fi
if ! "$folder/bench_device" --gpu; then exit 3; fi
more=()
torch=$(mktemp)
trap 'rm -f "$torch"' EXIT
if python3 -c "import torch" 2>/dev/null; then
  echo "PyTorch, the same step"
  python3 bench/torch_gpt2.py "$torch" && more=(--torch "$torch")
fi
"$folder/bench_device" "${more[@]}" "$@"
