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
export LD_LIBRARY_PATH=$PWD/$folder${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}  # libraries that libraries need
"$folder/bench_device" --gpu || exit
echo "Every kernel, attention and whole models against the host"
failed=0
"$cases" || failed=1
more=()
torch=$(mktemp)
trap 'rm -f "$torch"' EXIT
if python3 -c "import torch" 2>/dev/null; then
  echo "PyTorch, the same step"
  if python3 bench/torch_gpt2.py "$torch"; then more=(--torch "$torch"); fi
fi
"$folder/bench_device" "${more[@]}" "$@" || failed=$?
exit $failed
