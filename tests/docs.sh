#!/usr/bin/env bash
# docs.sh PAGE FOLDER COMPILER [FLAGS...]: compiles the programs of a page to objects and holds its error texts against the compiler.
# Before a fenced block stands what it is:
#   <!-- program NAME -->            starts a program         <!-- program NAME continues -->   goes on with it
#   <!-- program NAME for nvcc -->   starts one with kernels; for g++: one of more than the core, which g++ alone reads
#   <!-- mistake in NAME -->         added to the program so far, must not compile
#   <!-- what the compiler says -->  every line of the block is in what g++ said of the last mistake
#   <!-- it prints -->               what the last program for g++ prints when it is run, line by line
#   <!-- from FILE -->               every line of the block is in that file, which other tests compile ("..." leaves some out)
# A block of C++ with nothing before it is a mistake of the page.
set -uo pipefail
page=$1 folder=$2
shift 2
mkdir -p "$folder" && rm -f "$folder"/*
awk -v folder="$folder" '
  /^<!-- program [a-z_]+ -->$/            { kind = "program"; name = $3; next }
  /^<!-- program [a-z_]+ for nvcc -->$/   { kind = "program"; name = $3 "_nvcc"; next }
  /^<!-- program [a-z_]+ for g\+\+ -->$/   { kind = "program"; name = $3 "_gcc"; next }
  /^<!-- program [a-z_]+ continues -->$/  { kind = "program"; name = $3; next }
  /^<!-- mistake in [a-z_]+ -->$/         { kind = "mistake"; name = $4; next }
  /^<!-- what the compiler says -->$/     { kind = "said"; next }
  /^<!-- it prints -->$/                  { kind = "prints"; next }
  /^```cpp/ && kind == ""                 { print FILENAME ":" FNR ": a block of C++ that nothing compiles" > (folder "/unmarked") }
  /^<!-- from [^ ]+ -->$/                 { kind = "from"; quoted = folder "/" sprintf("%02d", ++quotes) "_from.txt"; print $3 > quoted; next }
  /^```/ && !inside { inside = 1; if (kind == "mistake") { ++mistakes; file = folder "/" sprintf("%02d", mistakes) "_mistake.cpp"
                        while ((getline line < (folder "/" name ".cpp")) > 0) print line > file; close(folder "/" name ".cpp") } next }
  /^```/ { inside = 0; if (kind == "mistake") close(file); if (kind == "program") close(folder "/" name ".cpp"); kind = ""; next }
  inside && kind == "program" { print >> (folder "/" name ".cpp") }
  inside && kind == "mistake" { print > file }
  inside && kind == "from"    { print > quoted }
  inside && kind == "prints"  { print > (folder "/" name "_prints.txt") }
  inside && kind == "said"    { print > (folder "/" sprintf("%02d", mistakes) "_said.txt") }
' "$page"
failed=0 programs=0
[ ! -e "$folder/unmarked" ] || { cat "$folder/unmarked"; failed=1; }
for program in "$folder"/*.cpp; do
  [ -e "$program" ] || continue
  case $program in *_nvcc.cpp) "$1" --version | grep -q NVIDIA || continue ;; esac
  programs=$((programs + 1))
  case $program in *_gcc.cpp) "$1" --version | grep -q "Free Software" || continue ;; esac
  grep -q '^int main(' "$program" || echo 'int main() {}' >> "$program"
  prints=${program%.cpp}_prints.txt
  object=(-c -o "$folder/program.o")
  case $program in *_gcc.cpp) object=(-fsyntax-only) ;; esac
  [ ! -e "$prints" ] || object=(-o "$folder/program")
  said=$("$@" "${object[@]}" "$program" 2>&1)
  status=$?
  case $program in
    *_mistake.cpp)
      [ $status -ne 0 ] || { echo "$program compiles, and must not"; failed=1; }
      expected=${program%_mistake.cpp}_said.txt
      "$1" --version | grep -q "Free Software" || continue  # the texts are those of g++
      [ -e "$expected" ] || continue
      said=${said//\\\'/\'} said=${said//\\\"/\"}
      while IFS= read -r line; do
        line=${line#"${line%%[![:space:]]*}"}
        case $line in ...|"") continue ;; esac
        grep -qF -- "$line" <<< "$said" || { printf '%s: the compiler does not say\n  %s\nbut\n%s\n' "$page" "$line" "$said" | cut -c1-500 | head -20; failed=1; }
      done < "$expected" ;;
    *)
      [ $status -eq 0 ] || { printf '%s does not compile:\n%s\n' "$program" "$said" | cut -c1-500 | head -30; failed=1; continue; }
      [ ! -e "$prints" ] || diff "$prints" <("$folder/program" 2>&1) || { echo "$page: its program prints otherwise"; failed=1; } ;;
  esac
done
for quote in "$folder"/*_from.txt; do
  [ -e "$quote" ] || continue
  programs=$((programs + 1))
  file=$(head -1 "$quote")
  while IFS= read -r line; do
    case $line in ""|...) continue ;; esac
    grep -qxF -- "$line" "$(dirname "$0")/../$file" || { printf '%s quotes what is not in %s:\n%s\n' "$page" "$file" "$line"; failed=1; }
  done < <(tail -n +2 "$quote")
done
[ $programs -gt 0 ] || ! grep -q '^```cpp' "$page" || { echo "$page has no program"; failed=1; }
exit $failed
