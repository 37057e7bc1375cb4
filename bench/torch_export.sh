# Plans exported for PyTorch, run by it on four processes over gloo. Sourced by run.sh; CFP_PYTHON: a Python that has torch and numpy.
python=${CFP_PYTHON:-python3}
"$python" -c "import numpy, torch" 2> /dev/null || { echo "torch_export: $python has no torch and numpy; CFP_PYTHON may name one that has" >&2; exit 2; }
. tests/packages.sh
install_packages
quietly build/configure.log cmake -S . -B build -G Ninja
quietly build/build.log cmake --build build --target cfp
"$python" bench/torch_export.py build/examples/cfp build/bench/torch_export "$@"
