// Greedy: node after node, what is cheapest given the nodes before it.
#pragma once

#include <cfp/solve/other/greedy_plan.hpp>
#include <cfp/solve/policy.hpp>

namespace cfp::inline v0_1 {

struct greedy_policy {
  static constexpr std::string_view name = "greedy";

  /// May find nothing where a plan exists. Its work is that of reading the graph once: no budget stops it.
  solution solve(const cost_graph& g, const solve_options& = {}) const {
    validate(g);
    solution out;
    const auto plan = detail::greedy_plan(g);
    if (!plan) return out;
    const plan_cost cost = evaluate(g, *plan);
    out.feasible = true;
    out.choices = *plan;
    out.time = cost.time;
    out.memory = cost.memory;
    return out;
  }
};

static_assert(policy<greedy_policy>);

}  // namespace cfp
