# How long the exact solver takes, and what others answer on the same graphs; with --plot FILE also its growth as a picture.
# Sourced by run.sh.
. bench/build.sh
plot=
if [ "${1:-}" = --plot ]; then
  plot=${2:?--plot takes a file}
  shift 2
fi
bench_packages=(coinor-libcbc-dev)  # the integer program it is compared with
[ -z "$plot" ] || bench_packages+=(gnuplot-nox)
build_bench solve
build/bench/bench_solve "$@" | tee build/solve.txt
if [ -n "$plot" ]; then
  awk '/^growth/ { on = 1; next } on && NF == 4 && $1 + 0 > 0 { print } on && NF == 0 { on = 0 }' build/solve.txt > build/growth.txt
  gnuplot -e "data='build/growth.txt'; output='$plot'" bench/solve.gp
fi
