#!/usr/bin/env bash
# docs_commands.sh CFP SOURCE: a block of a page that begins with "$ cfp ..." shows what that prints: its lines, from the first
# one on, as far as they are shown ("..." leaves some out); and then those of the file that -o names. Others may follow in the block.
# They run in a folder of their own, in which there is all that the source has.
set -uo pipefail
cfp=$(realpath "$1") source=$(realpath "$2")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
ln -s "$source"/* .
failed=0 blocks=0
command='' shown=()
compare() {
  local said line at=0
  blocks=$((blocks + 1))
  read -ra words <<< "${command#cfp }"
  said=$("$cfp" "${words[@]}" 2>&1) || { echo "$page: '$command' fails: $said"; failed=1; return; }
  for ((i = 0; i + 1 < ${#words[@]}; i++)); do
    [ "${words[$i]}" != -o ] || said+=${said:+$'\n'}$(tr -d '\000' < "${words[$((i + 1))]}")
  done
  mapfile -t lines <<< "$said"
  local free=0
  for line in "${shown[@]}"; do
    [ "$line" != ... ] || { free=1; continue; }
    if [ $free = 1 ]; then while [ $at -lt ${#lines[@]} ] && [ "${lines[$at]}" != "$line" ]; do at=$((at + 1)); done; fi
    [ "${lines[$at]:-}" = "$line" ] || { printf "%s: '%s' prints\n  %s\nand not\n  %s\n" "$page" "$command" "${lines[$at]:-nothing more}" "$line"; failed=1; return; }
    at=$((at + 1)) free=0
  done
}
for page in README.md docs/*.md; do
  inside=0
  while IFS= read -r line; do
    case $line in
      '```'*)
        [ $inside = 0 ] || [ -z "$command" ] || compare
        inside=$((1 - inside)) command='' shown=() ;;
      '$ cfp '*)
        [ $inside = 0 ] || [ -z "$command" ] || compare
        shown=()
        [ $inside = 0 ] || command=${line#'$ '} ;;
      *) [ -z "$command" ] || shown+=("$line") ;;
    esac
  done < "$page"
done
[ $blocks -gt 0 ] || { echo "no page shows a command and what it prints"; failed=1; }
exit $failed
