#!/usr/bin/env bash
# docs_schedules.sh CFP DOCS [--write]: the pictures of schedules that the pages show are what the program draws.
set -euo pipefail
cfp=$(realpath "$1") folder=$(mktemp -d)
cd "$2"
trap 'rm -rf "$folder"' EXIT
pictures=0
while read -r picture words; do
  pictures=$((pictures + 1))
  "$cfp" schedule $words --svg "$folder/picture.svg" > "$folder/text"
  [ "${3:-}" != --write ] || cp "$folder/picture.svg" "$picture"
  cmp "$folder/picture.svg" "$picture"
done < <(sed -nE 's/^!\[cfp schedule ([^]]*)\]\((.*)\)$/\2 \1/p' 14_pipelines.md)
[ $pictures -gt 8 ] || { echo "14_pipelines.md shows $pictures pictures"; exit 1; }
