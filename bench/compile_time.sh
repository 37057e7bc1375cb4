# What the compile-time checks cost a user: including the core, n distinct checks, a whole transformer layer. Sourced by
# run.sh. Times are the least of several runs, taken in turn, so that a busy machine disturbs all alike.
json=
while [ $# -gt 0 ]; do
  case $1 in
    --json) json=${2:?--json FILE}; shift 2 ;;
    *) echo "compile_time: unknown option $1" >&2; exit 2 ;;
  esac
done
cxx=${CXX:-g++}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
flags=(-std=c++20 -fsyntax-only -Iinclude)

program() {  # program NAME: source on stdin
  cat > "$folder/$1.cpp"
}
program empty <<< 'int main() {}'
printf '#include <array>\n#include <string_view>\nint main() {}\n' | program array_string_view
printf '#include <boost/mp11.hpp>\nint main() {}\n' | program mp11
printf '#include <cfp/core.hpp>\nint main() {}\n' | program core
checks() {  # n tensors and operators, all different
  cat <<'H'
#include <cfp/core.hpp>
#include <cfp/op/catalogue.hpp>
using mesh = cfp::mesh<cfp::axis<"data", 2>, cfp::axis<"model", 4>>;
using x = cfp::sharded<cfp::dims<"batch", "seq", "width">, mesh, cfp::split<"batch", "data">>;
H
  awk -v n="$1" 'BEGIN { for (i = 0; i < n; ++i)
    printf "static_assert(cfp::communication_free<cfp::linear, x, cfp::sharded<cfp::dims<\"width\", \"h%d\">, mesh, cfp::split<\"h%d\", \"model\">>>);\n", i, i
    print "int main() {}" }'
}
counts=(0 1 100 1000 10000)
for n in "${counts[@]}"; do checks "$n" | program "checks_$n"; done
layer_head='#include <cfp/program/layer.hpp>
#include <cfp/families/decoder_bases.hpp>
#include <cfp/families/decoder_layer.hpp>
'
printf '%sint main() {}\n' "$layer_head" | program layer_included
program layer_checked <<H
$layer_head
constexpr cfp::families::transformer config = [] {
  cfp::families::transformer t = cfp::families::gpt2();
  t.batch = 8, t.sequence = 1024, t.score_scale = 0.125;
  return t;
}();
constexpr cfp::tensor block(cfp::model& net) {
  const cfp::tensor y = cfp::families::decoder_layer(net, net.activation("x", {{"batch", 8}, {"sequence", 1024}, {"embedding", 768}}), config, "", 0, 0.004);
  net.scope("");
  return net.called("y", y);
}
using mesh = cfp::mesh<cfp::axis<"data", 2>, cfp::axis<"model", 4>>;
using layer = cfp::layer<block, mesh, cfp::given<"x", cfp::split<"batch", "data">>, cfp::given<"attn.c_attn.weight", cfp::split<"heads", "model">>,
                         cfp::given<"mlp.c_fc.weight", cfp::split<"hidden", "model">>, cfp::given<"y", cfp::split<"batch", "data">>>;
static_assert(layer::forward.size() == 2 && layer::backward.size() == 2);
int main() {}
H
# The layouts of a hand-written trainer: with all their checks, with the types that operators infer only, with nothing but the core.
trainer=tests/consumer/trainer/layouts.hpp
without() {  # without WORDS: the layouts, less the statements that have any of them
  sed '/#pragma once/d; s://.*::' "$trainer" | awk -v RS=';' -v words="$1" '$0 !~ words { printf "%s;", $0 }'
  echo 'int main() {}'
}
without 'no such words' | program trainer_checked
without static_assert | program trainer_inferred
without 'static_assert|_t<|using adam' | program trainer_plain
checks_in_trainer=$(grep -oE 'static_assert|result_t<|result_at_t<|takes<' "$trainer" | wc -l)

seconds() {  # seconds NAME: appends "NAME seconds kib"
  local t
  t=$( { /usr/bin/time -f '%e %M' "$cxx" "${flags[@]}" "$folder/$1.cpp"; } 2>&1 ) || { echo "$1 does not compile: $t" >&2; exit 1; }
  echo "$1 $t" >> "$folder/times"
}
small=(empty array_string_view core checks_0 checks_1 checks_100 layer_included layer_checked trainer_plain trainer_inferred trainer_checked)
has_mp11=0
"$cxx" "${flags[@]}" "$folder/mp11.cpp" 2>/dev/null && has_mp11=1 && small+=(mp11)
for round in 1 2 3 4 5; do
  printf '\rround %d of 5' "$round" >&2
  for name in "${small[@]}"; do seconds "$name"; done
  [ "$round" -le 2 ] && seconds checks_1000
done
printf '\r10,000 checks  ' >&2
seconds checks_10000
printf '\r               \r' >&2
least() { awk -v n="$1" '$1 == n && (best == "" || $2 < best) { best = $2 } END { print best == "" ? "null" : best }' "$folder/times"; }
memory() { awk -v n="$1" '$1 == n && $3 > most { most = $3 } END { printf "%.0f", most / 1024 }' "$folder/times"; }
over() { awk -v a="$(least "$1")" -v b="$(least "$2")" 'BEGIN { printf "%.2f", a - b }'; }
ms() { [ "$(least "$1")" = null ] && echo null || awk -v a="$(least "$1")" 'BEGIN { printf "%.0f", 1000 * a }'; }

# Class and function templates clang instantiates per check; deterministic.
instantiations=null
if command -v clang++ >/dev/null; then
  count() {
    clang++ -std=c++20 -Iinclude -c -ftime-trace -ftime-trace-granularity=0 -o "$folder/$1.o" "$folder/$1.cpp"
    grep -o '"name":"Instantiate\(Class\|Function\)"' "$folder/$1.json" | wc -l
  }
  instantiations=$(( ($(count checks_100) - $(count checks_1)) / 99 ))
fi

"$cxx" --version | head -1
printf '\nincluding, seconds over an empty file (%s s)\n' "$(least empty)"
printf '  %-26s %s\n' '<array>, <string_view>' "$(over array_string_view empty)" 'Boost.Mp11' "$([ $has_mp11 = 1 ] && over mp11 empty || echo -)" 'cfp/core.hpp' "$(over core empty)"
printf '\n%-10s %10s %12s %12s\n' checks seconds 'ms / check' 'peak MiB'
for n in "${counts[@]:1}"; do
  printf '%-10s %10s %12s %12s\n' "$n" "$(over "checks_$n" checks_0)" "$(awk -v a="$(least "checks_$n")" -v b="$(least checks_0)" -v n="$n" 'BEGIN { printf "%.2f", 1000 * (a - b) / n }')" "$(memory "checks_$n")"
done
printf '\ntemplates instantiated per check (clang): %s\n' "$instantiations"
printf 'a transformer layer, forward and backward: %s s over its headers (%s s)\n' "$(over layer_checked layer_included)" "$(least layer_included)"
printf 'a hand-written trainer (%s checks): %s s more with the operators it infers by, %s s with all checks, over the same file without (%s s; the core alone %s s)\n' \
  "$checks_in_trainer" "$(over trainer_inferred trainer_plain)" "$(over trainer_checked trainer_plain)" "$(least trainer_plain)" "$(least core)"
if [ -n "$json" ]; then
  {
    printf '{"include_ms": {"empty": %s, "array_string_view": %s, "mp11": %s, "core": %s},\n "checks": [' "$(ms empty)" "$(ms array_string_view)" "$(ms mp11)" "$(ms core)"
    sep=
    for n in "${counts[@]:1}"; do
      printf '%s{"count": %s, "seconds": %s, "peak_mib": %s}' "$sep" "$n" "$(over "checks_$n" checks_0)" "$(memory "checks_$n")"
      sep=', '
    done
    printf '],\n "instantiations_per_check": %s, "layer_seconds": %s,\n "trainer": {"checks": %s, "core_seconds": %s, "without_seconds": %s, "inferred_seconds": %s, "checked_seconds": %s}}\n' \
      "$instantiations" "$(over layer_checked layer_included)" "$checks_in_trainer" "$(least core)" "$(least trainer_plain)" "$(least trainer_inferred)" "$(least trainer_checked)"
  } > "$json"
fi
