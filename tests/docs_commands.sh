#!/usr/bin/env bash
# docs_commands.sh CFP SOURCE [--write]: a block of a page that begins with "$ cfp ..." shows what that prints: its lines, from the first
# one on, as far as they are shown ("..." leaves some out); and then those of the file that -o names. Others may follow in the block.
# They run in a folder of their own, in which there is all that the source has. --write: shows what they print now, as many lines as
# are shown; behind "..." from the same line on, or one that begins with its two words.
set -uo pipefail
cfp=$(realpath "$1") source=$(realpath "$2")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
ln -s "$source"/* .
write=${3:-} failed=0 blocks=0
command='' shown=() new=()
find_line() {  # find_line SHOWN: moves `at` to it, or, of what is written, to the line that begins with its two words
  local n
  for ((n = at; n < ${#lines[@]}; n++)); do [ "${lines[$n]}" != "$1" ] || { at=$n; return; }; done
  [ -n "$write" ] || { at=$n; return; }
  local -a printed shows
  read -ra shows <<< "$1"
  for (( ; at < ${#lines[@]}; at++)); do
    read -ra printed <<< "${lines[$at]}"
    [ "${printed[*]:0:2}" != "${shows[*]:0:2}" ] || return
  done
}
compare() {
  local said line at=0
  blocks=$((blocks + 1))
  read -ra words <<< "${command#cfp }"
  said=$("$cfp" "${words[@]}" 2>&1) || { echo "$page: '$command' fails: $said"; failed=1; new+=("${shown[@]}"); return; }
  for ((i = 0; i + 1 < ${#words[@]}; i++)); do
    [ "${words[$i]}" != -o ] || said+=${said:+$'\n'}$(tr -d '\000' < "${words[$((i + 1))]}")
  done
  mapfile -t lines <<< "$said"
  local free=0
  for line in "${shown[@]}"; do
    [ "$line" != ... ] || { free=1; new+=("$line"); continue; }
    [ $free = 0 ] || find_line "$line"
    [ -z "$write" ] || { new+=("${lines[$at]:-}"); at=$((at + 1)) free=0; continue; }
    [ "${lines[$at]:-}" = "$line" ] || { printf "%s: '%s' prints\n  %s\nand not\n  %s\n" "$page" "$command" "${lines[$at]:-nothing more}" "$line"; failed=1; return; }
    at=$((at + 1)) free=0
  done
}
for page in README.md docs/*.md; do
  inside=0 new=()
  while IFS= read -r line; do
    case $line in
      '```'*)
        [ $inside = 0 ] || [ -z "$command" ] || compare
        inside=$((1 - inside)) command='' shown=()
        new+=("$line") ;;
      '$ cfp '*)
        [ $inside = 0 ] || [ -z "$command" ] || compare
        shown=()
        [ $inside = 0 ] || command=${line#'$ '}
        new+=("$line") ;;
      *) [ -z "$command" ] && new+=("$line") || shown+=("$line") ;;
    esac
  done < "$page"
  [ -z "$write" ] || printf '%s\n' "${new[@]}" > "$source/$page"
done
[ $blocks -gt 0 ] || { echo "no page shows a command and what it prints"; failed=1; }
exit $failed
