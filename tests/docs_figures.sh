#!/usr/bin/env bash
# docs_figures.sh SOURCE: every table of measured figures, drawn with | or in a block of its own, says in its section, before it or
# in the few lines behind it, which command makes them and on which day they were made; and that command exists. A figure is a
# number with a unit or with decimals.
set -uo pipefail
cd "$1"
failed=0
says=$(awk '
  function figures(line,   n) {
    gsub(/`[^`]*`/, "", line)
    n = gsub(/[0-9](\.[0-9]+)? ?(ms|s|%|MiB|GiB|GB\/s)([ |,;!\]]|$)|[0-9]\.[0-9]/, "&", line)
    return n
  }
  function check(  k, text, from) {
    if (rows < 3) { rows = 0; return }
    for (k = section; k <= last + 6 && k in all; k++) { if (k > last + 1 && all[k] ~ /^#/) break; text = text "\n" all[k] }
    if (text !~ /20[0-9][0-9]-[01][0-9]-[0-3][0-9]/) print page ":" first ": figures without a day"
    if (text !~ /bash (bench|tests|examples)\/[a-z_\/]*(run|analysis)?\.sh/ && text !~ /`cfp / && text !~ /`python3 tests\/[a-z_]+\.py / && text !~ /CFP_PRINT=1 build\/tests\/runtime_[a-z]+ /) print page ":" first ": figures without a command that makes them"
    tables++
    rows = 0
  }
  function page_ends(  i) {
    section = 1; inside = 0
    for (i = 1; i <= count; i++) {
      if (all[i] ~ /^```/) { if (inside && plain) check(); rows = 0; inside = !inside; plain = inside && all[i] == "```"; continue }
      if (!inside && all[i] ~ /^#/) { check(); section = i; continue }
      if ((inside && plain) || (!inside && all[i] ~ /^\|/)) { if (figures(all[i]) > 0) { if (rows++ == 0) first = i; last = i } continue }
      if (!inside) check()
    }
    check()
    delete all
    count = 0
  }
  FNR == 1 && NR > 1 { page_ends() }
  { page = FILENAME; all[++count] = $0 }
  END { page_ends(); if (tables < 10) print "only " tables " tables of figures were found" }
' README.md docs/1_*.md docs/[2-689]_*.md docs/1[0-8]_*.md)
[ -z "$says" ] || { echo "$says"; failed=1; }
# Every bench that a page names is one.
for what in $(grep -ohE 'bash bench/run\.sh [a-z_]+' README.md docs/*.md | sort -u | sed 's/.* //'); do
  [ -e "bench/$what.sh" ] || { echo "bash bench/run.sh $what: there is no such bench"; failed=1; }
done
exit $failed
