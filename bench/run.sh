#!/usr/bin/env bash
# run.sh WHAT [--json FILE]: measures, and prints ratios of one run. WHAT: compile_time.
set -euo pipefail
cd "$(dirname "$0")/.."
what=${1:-}
[ -n "$what" ] && [ -f "bench/$what.sh" ] || { echo "usage: bash bench/run.sh compile_time [--json FILE]" >&2; exit 2; }
shift
. "bench/$what.sh"
