// What plans through each choice take at least, and the choices that leaves.
#pragma once

#include <cfp/solve/exact/dominance.hpp>
#include <cfp/solve/exact/elimination.hpp>

#include <cmath>
#include <memory>

namespace cfp::inline v0_1::detail {

using choice_bounds = std::vector<std::vector<double>>;  // per node and choice of the cost graph, on time

/// How far off a bound may be that was computed with prices of all memory there is.
inline double rounding(double time, double priced) { return 1e-13 * (std::fabs(time) + priced); }

/// The bounds of the choices of `p` at a price of memory, no lower than those `known`, if any; infinite for those that
/// are not in `p`.
inline std::shared_ptr<const choice_bounds> bounds_through(const problem& p, elimination& e, double price,
                                                           const choice_bounds* known, std::int64_t limit,
                                                           work_meter& meter) {
  meter.spend(3 * e.work());
  e.run(price);
  e.run_through();
  auto bounds = std::make_shared<choice_bounds>(p.nodes.size());
  for (std::size_t n = 0; n < p.nodes.size(); ++n) {
    const problem_node& node = p.nodes[n];
    const std::size_t known_of = known ? (*known)[n].size() : 0;
    (*bounds)[n].assign(std::max(static_cast<std::size_t>(node.original.back()) + 1, known_of), infinite_time);
    for (std::size_t c = 0; c < node.size(); ++c) {
      const auto original = static_cast<std::size_t>(node.original[c]);
      const double unused = price * static_cast<double>(limit - p.base_memory - node.transient[c]);
      const double before = known ? (*known)[n][original] : -infinite_time;
      const double bound = e.through_choice(n, c) - unused;
      (*bounds)[n][original] = std::max(before, bound - rounding(bound, unused));
    }
  }
  return bounds;
}

/// `p` with only the choices whose bounds are below a goal.
inline problem below(const problem& p, const choice_bounds& known, double goal) {
  choice_mask keep = keep_all(p);
  for (std::size_t n = 0; n < p.nodes.size(); ++n)
    for (std::size_t c = 0; c < p.nodes[n].size(); ++c) {
      const auto original = static_cast<std::size_t>(p.nodes[n].original[c]);
      keep[n][c] = original < known[n].size() && known[n][original] < goal;
    }
  return without_dominated(keep_only(p, keep), true);
}

}  // namespace cfp::detail
