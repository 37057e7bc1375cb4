#!/usr/bin/env bash
# chains.sh HEADERS...: lists of these headers, a line each, every header once. A header is read alone as well behind one that
# it includes, with all that one includes, as by itself: so a list is one unit for the compiler, and names what is missing.
# (What stands within a condition may not be included.)
set -euo pipefail
cd "$(dirname "$0")/../include"
find cfp -name '*.hpp' -print0 | xargs -0 awk -v wanted="$*" '
FNR == 1 { within = 0; names[++count] = FILENAME }
/^ *# *if/ { within++ }
/^ *# *endif/ { within-- }
/^ *# *include <cfp\// {
  what = $0; gsub(/^[^<]*<|>.*/, "", what)
  any[FILENAME] = any[FILENAME] " " what
  if (!within) sure[FILENAME] = sure[FILENAME] " " what
}
function reach(from, by, into, of,   parts, n, i) {  # all that `of` includes, and itself
  if ((from, of) in into) return
  into[from, of] = 1
  n = split(by[of], parts, " ")
  for (i = 1; i <= n; i++) reach(from, by, into, parts[i])
}
END {
  for (i = 1; i <= count; i++) { reach(names[i], any, can, names[i]); reach(names[i], sure, has, names[i]) }
  for (pair in has) { split(pair, p, SUBSEP); size[p[1]]++ }
  for (pair in can) { split(pair, p, SUBSEP); listed[p[1]] = listed[p[1]] " " p[2] }
  left = split(wanted, heads, " ")
  for (i = 2; i <= left; i++)  # those that include little first; alphabetical among equals
    for (j = i; j > 1 && (size[heads[j]] < size[heads[j - 1]]); j--) { t = heads[j]; heads[j] = heads[j - 1]; heads[j - 1] = t }
  for (i = 1; i <= left; i++) {
    h = heads[i]; best = 0
    for (c = 1; c <= chains; c++) {
      if (!((h, last[c]) in has) || (best && size[last[c]] <= size[last[best]])) continue
      n = split(listed[last[c]], parts, " ")
      for (k = 1; k <= n && ((h, parts[k]) in has); k++) {}
      if (k > n) best = c
    }
    if (!best) best = ++chains
    chain[best] = chain[best] (chain[best] == "" ? "" : " ") h
    last[best] = h
  }
  for (c = 1; c <= chains; c++) print chain[c]
}'
