// What memory is worth: the fastest plan within one limit of memory after another.
#pragma once

#include <cfp/core/bad_input.hpp>
#include <cfp/solve/exact/exact.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace cfp::inline v0_1 {

/// From the fastest plan of a graph, whose own limit plays no part, to the one of least memory: each needs less memory
/// than the one before, and more time, and is the fastest within its memory (where `optimal`; `gap` says how far it may
/// be from that). There are about `most`, as far apart in memory as that allows, or all there are if there are fewer
/// bytes than that between the two ends. None if the graph has no plan. Throws `invalid_cost_graph`, and `bad_input`
/// for fewer than 2.
inline std::vector<solution> memory_curve(const cost_graph& g, std::int64_t most = 12,
                                          const solve_options& options = {}) {
  if (most < 2) throw bad_input("a curve has at least 2 points, not " + std::to_string(most));
  limit_solver solver(g);
  std::vector<solution> out;
  solution now = solver.solve({}, options);
  if (!now.feasible) return out;
  const std::int64_t least = solver.solve(-1, options).least_memory.value_or(0);
  const std::int64_t apart = std::max<std::int64_t>(1, (now.memory - least) / (most - 1));
  out.push_back(std::move(now));
  for (std::int64_t limit = out.back().memory; limit > least;) {
    limit = std::max(std::min(limit, out.back().memory) - apart, least);
    now = solver.solve(limit, options);
    if (!now.feasible) break;
    const double before = out.back().time;
    if (now.time - before <= 1e-10 * std::fabs(before)) out.back() = std::move(now);  // as fast, and leaner
    else out.push_back(std::move(now));
  }
  return out;
}

}  // namespace cfp
