// Solving while times are not known yet: with lower bounds in their places, and what matters asked for.
#pragma once

#include <cfp/solve/exact/exact.hpp>

#include <utility>
#include <vector>

namespace cfp::inline v0_1 {

/// The best plan of what `make()` gives, a cost graph of which some times are lower bounds; or, sooner, a plan that
/// takes at most 1 + `tolerance` of the time that no plan is below. `ask(choices)` has all times of a plan made known
/// in the graphs that follow, and returns how many were not. The bound of what is returned is of all plans.
template <class Make, class Ask>
solution solve_lazily(double tolerance, const Make& make, const Ask& ask) {
  std::vector<std::vector<int>> known;  // plans
  for (;;) {
    const cost_graph now = make();
    solution s = solve(now);
    if (!s.feasible) return s;
    for (const std::vector<int>& choices : known) {
      const plan_cost cost = evaluate(now, choices);
      if (cost.time > (1 + tolerance) * s.bound || (now.memory_limit && cost.memory > *now.memory_limit)) continue;
      s.optimal = false;
      s.choices = choices;
      s.time = cost.time;
      s.memory = cost.memory;
      return s;
    }
    const auto asked = ask(s.choices, tolerance * s.time);
    if (asked.figures == 0) return s;
    if (asked.all) known.push_back(std::move(s.choices));
  }
}

}  // namespace cfp
