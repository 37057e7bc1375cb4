# What building costs: everything of this project but sanitizers, clean; a user's own program, from headers alone and linked
# with what is compiled; the compile-time checks. With --ci also a whole .ci/run of a clean clone. Sourced by run.sh.
json= ci=null
while [ $# -gt 0 ]; do
  case $1 in
    --json) json=${2:?--json FILE}; shift 2 ;;
    --ci) ci=measured; shift ;;
    *) echo "build_time: unknown option $1" >&2; exit 2 ;;
  esac
done
. tests/packages.sh
packages+=(time)
install_packages
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
# Each compilation notes its seconds of a core, and the most memory any of its processes had.
cat > "$folder/timed" <<H
#!/bin/sh
exec /usr/bin/time -a -o "$folder/times" -f '%U %S %M' "\$@"
H
chmod +x "$folder/timed"
launcher=()
for language in CXX CUDA; do launcher+=("-DCMAKE_${language}_COMPILER_LAUNCHER=$folder/timed"); done

echo "building everything"
begin=$SECONDS
quietly "$folder/configure.log" cmake -S . -B "$folder/build" -G Ninja "${launcher[@]}"
: > "$folder/times"  # not what the configuration tried
quietly "$folder/build.log" cmake --build "$folder/build"
clean_seconds=$((SECONDS - begin))
core_seconds=$(awk 'NF == 3 { s += $1 + $2 } END { printf "%.0f", s }' "$folder/times")
largest=$(awk 'NF == 3 && $3 > m { m = $3 } END { printf "%.0f", m / 1024 }' "$folder/times")

echo "compiling a user's program"
quietly "$folder/install.log" cmake --install "$folder/build" --prefix "$folder/installed"
user() {  # user COMPONENT: seconds of a core to compile and link tests/consumer/your_model, as a project of its own
  sed "s/kernels/$1/" tests/consumer/your_model/CMakeLists.txt > "$folder/CMakeLists.txt"
  cp tests/consumer/your_model/main.cpp "$folder/"
  quietly "$folder/$1.log" cmake -S "$folder" -B "$folder/user_$1" -G Ninja -DCMAKE_BUILD_TYPE=Release -Dcfp_ROOT="$folder/installed"
  /usr/bin/time -o "$folder/user" -f '%U %S' cmake --build "$folder/user_$1" > "$folder/$1.log" 2>&1 || { cat "$folder/$1.log" >&2; exit 1; }
  awk '{ printf "%.1f", $1 + $2 }' "$folder/user"
}
header_only=$(user cfp) compiled=$(user kernels)

bash bench/run.sh compile_time --json "$folder/checks.json" > /dev/null
figure() { grep -o "$1: [0-9.]*" "$folder/checks.json" | head -1 | grep -o '[0-9.]*$'; }
core_ms=$(figure '"core"') plain_ms=$(figure '"array_string_view"') checks=$(figure '"count": 1000, "seconds"')

if [ "$ci" = measured ]; then
  echo "running the tests in a clean clone"
  git clone -q . "$folder/clone"
  begin=$SECONDS
  (cd "$folder/clone" && bash .ci/run) > "$folder/ci.log" 2>&1 || { tail -50 "$folder/ci.log" >&2; exit 1; }
  ci=$(awk -v s=$((SECONDS - begin)) 'BEGIN { printf "%.1f", s / 60 }')
fi

printf 'everything but sanitizers, clean: %s core-seconds, %s s here; largest compiler process %s MiB\n' "$core_seconds" "$clean_seconds" "$largest"
printf 'a user'"'"'s program, core-seconds: %s from headers alone, %s with cfp::kernels\n' "$header_only" "$compiled"
printf 'cfp/core.hpp %s ms, <array> and <string_view> %s ms; 1,000 checks %s s; ci %s minutes\n' "$core_ms" "$plain_ms" "$checks" "$ci"
if [ -n "$json" ]; then
  printf '{"clean_core_seconds": %s, "largest_compile_mib": %s, "user_program_seconds": {"header_only": %s, "compiled_kernels": %s}, "ci_minutes": %s,\n "include_core_ms": %s, "include_array_string_view_ms": %s, "checks_1000_seconds": %s}\n' \
    "$core_seconds" "$largest" "$header_only" "$compiled" "$ci" "$core_ms" "$plain_ms" "$checks" > "$json"
fi
