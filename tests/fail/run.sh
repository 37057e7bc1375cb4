#!/usr/bin/env bash
# run.sh FILE COMPILER [FLAGS...]: the file must not compile to an object: it says what it expects, {{expected-error}} and
# {{expected-words}}, once, in few lines, and nothing else. That everything but the mistake compiles is so because nothing
# else is said, and because controls.sh compiles all files without their mistakes. Where the compiler prints no texts the
# words stand one by one (core/vocabulary.hpp): then letters and digits are compared.
set -uo pipefail
file=$1
shift
between() { sed -n "s/^\/\/ $1 {{\(.*\)}}\$/\1/p" "$file"; }
error=$(between expected-error) words=$(between expected-words) errors=$(between expected-errors) most_lines=30
[ -n "$error$words" ] || { echo "$file expects nothing"; exit 1; }
object=$(mktemp --suffix .o)
trap 'rm -f "$object"' EXIT

if said=$("$@" -c -o "$object" "$file" 2>&1); then
  echo "compiles, and must not"
  exit 1
fi
said=${said//\\\'/\'} said=${said//\\\"/\"}

letters() { sed 's/->/ becomes /g; s/=/ equals /g; s/:\([A-Za-z0-9]\)/ over \1/g; s/\.\([A-Za-z0-9]\)/ dot \1/g; s/[^A-Za-z0-9]//g' | tr -d '\n'; }
count=$(grep -c "error:" <<< "$said")
lines=$(wc -l <<< "$said")
form=$("$1" --version 2>&1 | grep -oE "Free Software|clang|NVIDIA" | head -1)
case "$form $*" in
  *c++26*) [ -n "$words" ] && error= ;;  # the message is the sentence, not the rule
  clang* | NVIDIA*) form=words ;;
esac
if [ -n "$error" ] && ! grep -qF -- "$error" <<< "$said"; then
  printf 'did not say "%s" but:\n%s\n' "$error" "$said" | head -40
  exit 1
fi
if [ "$form" = words ]; then
  said=$(grep -o 'in_words<[^>]*>' <<< "$said" | sed 's/^in_words//' | letters)
  words=$(letters <<< "$words")
fi
if [ -n "$words" ] && ! grep -qF -- "$words" <<< "$said"; then
  printf 'did not say "%s" but:\n%s\n' "$words" "$said" | head -40
  exit 1
fi
if [ "$count" -ne "${errors:-1}" ] || { [ "$form" = "Free Software" ] && [ "$lines" -gt $most_lines ]; }; then
  printf '%s errors in %s lines for a mistake:\n%s\n' "$count" "$lines" "$said" | cut -c1-300 | head -40
  exit 1
fi
