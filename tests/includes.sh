#!/usr/bin/env bash
# What the headers include: no folder one above it, no circle; and what a header names of the standard library or of
# others it includes itself, or one of ours that it includes does. A plan for a described machine needs no library that
# runs anything.
set -euo pipefail
cd "$(dirname "$0")/../include/cfp"
find . -name '*.hpp' -o -name '*.cuh' | sed 's#^\./##' | sort | xargs awk '
BEGIN {
  # A folder, and those it may include. No circle can be drawn in this order.
  may["core"] = " "
  may["file"] = " core "
  may["op"] = " core "
  may["model"] = " op core "
  may["block"] = " model op core "
  may["program"] = " pipeline model op core "
  may["communicator"] = " op core "
  may["pipeline"] = " file core "
  may["solve"] = " pipeline file core "
  may["families"] = " model op file core "
  may["graphs"] = " model op file core "
  may["backend"] = " program communicator model op file core "
  may["profile"] = " backend program pipeline block solve model op file core "
  may["plan"] = " profile program pipeline block solve model op core "
  may["export"] = " plan program block model op file core "
  may["session"] = " export plan profile backend program block solve families communicator model op file core "
  # A word of others, and the header that has it.
  split("vector:vector string:string map:map set:set array:array function:functional unique_ptr:memory shared_ptr:memory " \
        "make_unique:memory make_shared:memory optional:optional variant:variant span:span mutex:mutex lock_guard:mutex " \
        "thread:thread atomic:atomic string_view:string_view|string pair:utility|map|algorithm|vector|string move:utility|algorithm|vector|string|memory|functional forward:utility|functional deque:deque " \
        "runtime_error:stdexcept invalid_argument:stdexcept logic_error:stdexcept exception:exception|stdexcept tuple:tuple " \
        "numeric_limits:limits ifstream:fstream ofstream:fstream stringstream:sstream ostream:ostream|iosfwd " \
        "unordered_map:unordered_map int64_t:cstdint uint64_t:cstdint int32_t:cstdint uint32_t:cstdint uint8_t:cstdint " \
        "size_t:cstddef|string|vector|array|cstdint|memory|utility byte:cstddef sqrt:cmath pow:cmath log:cmath exp:cmath " \
        "isnan:cmath sort:algorithm find:algorithm any_of:algorithm all_of:algorithm copy_n:algorithm fill_n:algorithm " \
        "max:algorithm min:algorithm min_element:algorithm max_element:algorithm stable_sort:algorithm count:algorithm " \
        "mt19937:random memcpy:cstring memset:cstring snprintf:cstdio printf:cstdio iota:numeric bit_cast:bit", words, " ")
  for (i in words) { split(words[i], w, ":"); needs["std::" w[1]] = w[2] }
  needs["nlohmann::"] = "nlohmann/json.hpp"
  needs["protozero::"] = "protozero/"
  needs["thrust::"] = "thrust/"
  needs["r123::"] = "Random123/"
}
FNR == 1 { file = FILENAME; folder = file; sub("/.*", "", folder); all[++files] = file; text = 1 }
/^#include </ {
  what = $2; gsub("[<>]", "", what)
  if (what ~ /^cfp\//) {
    sub("^cfp/", "", what); ours[file] = ours[file] " " what
    to = what; sub("/.*", "", to)
    if (folder != to && file ~ "/" && to in may && index(may[folder], " " to " ") == 0) {
      print file ": includes " what "; " folder " may include" (may[folder] == " " ? " nothing" : may[folder]) "alone"; bad = 1
    }
  } else has[file] = has[file] "\n" what "\n"
  next
}
{
  sub("//.*", "")
  if (!index($0, "::")) next
  for (n in needs) if (index($0, n) && $0 ~ n (n ~ /::$/ ? "" : "([^a-zA-Z0-9_]|$)")) used[file, n] = FNR
}
function closure(f, seen,   list, k, out, i) {
  if (index(visited, "\n" f "\n")) return ""
  visited = visited "\n" f "\n"
  out = has[f]
  k = split(ours[f], list, " ")
  for (i = 1; i <= k; i++) out = out closure(list[i])
  return out
}
END {
  for (i = 1; i <= files; i++) {
    f = all[i]; visited = ""; everything = closure(f)
    if (f ~ "^(file|plan|profile/machine|solve)/|plan_for" && match(everything, "\n(thrust/|cblas|Random123/|cuda)[^\n]*")) {
      print f ": comes to include <" substr(everything, RSTART + 1, RLENGTH - 1) ">, which a plan does not need"; bad = 1
    }
    for (n in needs) {
      if (!((f, n) in used)) continue
      k = split(needs[n], options, "|"); found = 0
      for (o = 1; o <= k; o++) if (index(everything, "\n" options[o] (options[o] ~ "/$" ? "" : "\n"))) found = 1
      if (!found) { print f ":" used[f, n] ": names " n " but nothing it includes has <" options[1] ">"; bad = 1 }
    }
  }
  exit bad
}'

# Each is read once.
without=$(grep -rLx '#pragma once' --include='*.hpp' --include='*.cuh' . || true)
if [ -n "$without" ]; then
  echo "without #pragma once: $without"
  exit 1
fi

# What is thrown is below cfp::error (core/error.hpp); what emulates a GPU says that a kernel is wrong, to who writes it.
if grep -rnE 'throw (std::|")' --include='*.hpp' --include='*.cuh' . | grep -v '^./backend/emulated/'; then
  echo "is thrown, and is not below cfp::error"
  exit 1
fi
