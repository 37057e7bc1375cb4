#!/usr/bin/env bash
# parsed.sh COMPILER [FLAGS...] UNIT: g++ reads the unit to its last line, which is an assertion that fails, and says
# nothing else. There it stops: templates that are used are not instantiated, which takes twice as long as reading, and
# which the programs of the tests do.
set -uo pipefail
said=$("$@" -Wfatal-errors 2>&1)
if [ "$(grep -c ': error: \|: warning: ' <<< "$said")" != 1 ] || ! grep -q 'error: static.assert[a-z]* failed.*parsed to its end' <<< "$said"; then
  echo "$said"
  exit 1
fi
