#!/usr/bin/env bash
# instantiations.sh FOLDER CLANG FLAGS...: templates instantiated per distinct check must not grow. Counted, not timed.
set -euo pipefail
folder=$1
shift
mkdir -p "$folder"
count() {  # count N: events in a program of N checks
  {
    printf '#include <cfp/core.hpp>\n#include <cfp/op/catalogue.hpp>\nusing mesh = cfp::mesh<cfp::axis<"data", 2>, cfp::axis<"model", 4>>;\n'
    printf 'using x = cfp::sharded<cfp::dims<"batch", "width">, mesh, cfp::split<"batch", "data">>;\n'
    for ((i = 0; i < $1; ++i)); do
      printf 'static_assert(cfp::communication_free<cfp::linear, x, cfp::sharded<cfp::dims<"width", "h%d">, mesh, cfp::split<"h%d", "model">>>);\n' "$i" "$i"
    done
  } > "$folder/checks.cpp"
  "${compile[@]}" -c -ftime-trace -ftime-trace-granularity=0 -o "$folder/checks.o" "$folder/checks.cpp"
  grep -o '"name":"Instantiate\(Class\|Function\)"' "$folder/checks.json" | wc -l
}
compile=("$@")
one=$(count 1) many=$(count 101)
each=$(( (many - one) / 100 ))
echo "$each templates instantiated per check, at most 12"
[ "$each" -le 12 ] && [ "$each" -ge 1 ]
