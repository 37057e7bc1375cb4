#!/usr/bin/env bash
# run.sh WHAT [--json FILE], or device [--out DIR] [--seconds S] [--dry]: measures, and prints ratios of one run. WHAT: analysis, block_claim, build_time, compile_time, device, fleets, machines, memory, pipeline, plan_quality, plan_ranking, scale, solve, torch_export, unequal_stages.
set -euo pipefail
cd "$(dirname "$0")/.."
what=${1:-}
case $what in
  analysis | block_claim | build_time | compile_time | device | fleets | machines | memory | pipeline | plan_quality | plan_ranking | scale | solve | torch_export | unequal_stages) ;;
  *) echo "usage: bash bench/run.sh analysis|block_claim|build_time|compile_time|device|fleets|machines|memory|pipeline|plan_quality|plan_ranking|scale|solve|torch_export|unequal_stages [--json FILE], or device [--out DIR] [--seconds S] [--dry]" >&2; exit 2 ;;
esac
shift
. "bench/$what.sh"
