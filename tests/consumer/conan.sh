#!/usr/bin/env bash
# conan.sh SOURCE FOLDER: the package made by Conan, and a program that uses it. Conan is taken from PyPI where it is not
# there; without it, or PyPI, one sentence.
set -euo pipefail
source=$1 folder=$2
mkdir -p "$folder"
conan=$(command -v conan || true)
if [ -z "$conan" ]; then
  conan=$folder/python/bin/conan
  if [ ! -x "$conan" ] && ! { python3 -m venv "$folder/python" && "$folder/python/bin/pip" install -q conan; } > "$folder/pip.log" 2>&1; then
    echo "skipped: Conan is not here, and cannot be had from PyPI"
    exit 0
  fi
fi
export CONAN_HOME=$folder/home
"$conan" profile detect --force > "$folder/profile.log" 2>&1
"$conan" create "$source/examples/packages/conan" -s compiler.cppstd=20 --no-remote -c tools.cmake.cmake_layout:test_folder='$TMP' -c tools.cmake.cmaketoolchain:user_presets= 2>&1 | tee "$folder/create.log" | tail -3
grep -q '^communication-free$' "$folder/create.log"
"$conan" list 'cfp/*' 2> /dev/null | grep -E '^ +cfp/[0-9.]+$'
