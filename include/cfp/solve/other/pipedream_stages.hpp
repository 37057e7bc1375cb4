// PipeDream's cut into stages (Narayanan et al., SOSP 2019, section 3.1): the least time of the slowest stage or send,
// where a stage may be replicated over several workers, A(j, m). What the pipeline takes to fill is not looked at.
#pragma once

#include <cfp/solve/other/stage_partition.hpp>

namespace cfp::inline v0_1 {

/// A stage of layers on `workers` replicas, as the paper has it: each replica takes every m-th micro-batch, so that one
/// takes a part of the time, and as often 2 (m - 1) / m of `weights` milliseconds for sending all weights goes to
/// synchronise them, in `update`. What is kept is of each replica's own micro-batches. Throws bad_input for less than
/// one.
inline stage_option replicated(const stage_option& one, int workers, double weights) {
  if (workers < 1) throw bad_input("a stage runs on 1 worker or more, not " + std::to_string(workers));
  stage_option out = one;
  out.forward /= workers, out.backward /= workers, out.kept /= workers;
  out.update = 2.0 * (workers - 1) / workers * weights;
  out.devices = one.devices * workers;
  return out;
}

/// PipeDream's time of a stage, milliseconds of a micro-batch: max(sum of layers / m, synchronisation of the weights).
inline double pipedream_stage_time(const stage_option& o) { return std::max(o.forward + o.backward, o.update); }

/// PipeDream's time of a plan, milliseconds of a micro-batch when the pipeline is full: of its slowest stage or send.
inline double pipedream_time(const stage_problem& p, const std::vector<int>& ends,
                             const std::vector<stage_option>& chosen) {
  double slowest = 0;
  for (std::size_t s = 0; s < chosen.size(); ++s)
    slowest = std::max({slowest, pipedream_stage_time(chosen[s]), detail::sent_behind(p, ends[s])});
  return slowest;
}

namespace detail {

inline stage_solution pipedream_search(const stage_problem& p, staged_schedule kind, const stage_range& r) {
  check_range(p, r);
  least_partition table(p, r);
  table.fill(kind, [&](const stage_step& s, double behind) {
    return std::max({behind, pipedream_stage_time(*s.option), sent_behind(p, s.end)});
  });
  return table.plan(kind);
}

}  // namespace detail

/// The plan that PipeDream's search finds, of as many stages as the problem says, and the time it takes by a schedule
/// with one update a step. Throws bad_input for sizes that cannot be.
inline stage_solution pipedream_stages(const stage_problem& p, staged_schedule kind) {
  return detail::pipedream_search(p, kind, detail::said_stages(p));
}

/// The same, of any number of stages (`stages` of the problem is not read) whose options use all of `workers` devices.
inline stage_solution pipedream_stages(const stage_problem& p, staged_schedule kind, int workers) {
  return detail::pipedream_search(p, kind, detail::any_stages(p, workers));
}

}  // namespace cfp
