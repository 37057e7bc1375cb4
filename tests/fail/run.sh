#!/usr/bin/env bash
# run.sh FILE COMPILER [FLAGS...]: the file must compile with CFP_CONTROL defined, and must not without, saying what it
# expects: {{expected-error}} on every compiler, {{expected-words}} where template arguments are printed as text.
set -uo pipefail
file=$1
shift
between() { sed -n "s/^\/\/ $1 {{\(.*\)}}\$/\1/p" "$file"; }
error=$(between expected-error) words=$(between expected-words)
[ -n "$error" ] || { echo "$file expects nothing"; exit 1; }

if ! said=$("$@" -DCFP_CONTROL "$file" 2>&1); then
  printf 'the control does not compile:\n%s\n' "$said" | head -40
  exit 1
fi
if said=$("$@" "$file" 2>&1); then
  echo "compiles, and must not"
  exit 1
fi
said=${said//\\\'/\'}
case "$* $("$1" --version 2>&1)" in
  *c++26*) [ -n "$words" ] && error= ;;  # the message is the sentence, not the rule
  *clang*|*nvidia*|*NVIDIA*) words= ;;
esac
if [ -n "$error" ] && ! grep -qF -- "$error" <<< "$said"; then
  printf 'did not say "%s" but:\n%s\n' "$error" "$said" | head -40
  exit 1
fi
said=${said//\\\"/\"}
if [ -n "$words" ] && ! grep -qF -- "$words" <<< "$said"; then
  printf 'did not say "%s" but:\n%s\n' "$words" "$said" | head -40
  exit 1
fi
count=$(grep -c "error:" <<< "$said")
if [ "$count" -gt 2 ]; then
  printf '%s errors for one mistake:\n%s\n' "$count" "$said" | grep "error:" | head -40
  exit 1
fi
