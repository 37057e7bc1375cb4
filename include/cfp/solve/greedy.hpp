// Greedy: node after node, what is cheapest given the nodes before it.
#pragma once

#include <cfp/solve/policy.hpp>

namespace cfp::inline v0_1 {

struct greedy_policy {
  static constexpr std::string_view name = "greedy";

  /// Never looks ahead, except that what it takes leaves memory for the leanest choices of the nodes to come. May find nothing
  /// where a plan exists.
  solution solve(const cost_graph& g, const solve_options& = {}) const {
    validate(g);
    const auto edges = detail::edges_to_earlier(g);
    const std::size_t count = g.nodes.size();
    std::vector<std::int64_t> to_come(count + 1, 0);  // least memory of the nodes from here on
    for (std::size_t n = count; n > 0; --n) to_come[n - 1] = to_come[n] + *std::min_element(g.nodes[n - 1].memory.begin(), g.nodes[n - 1].memory.end());
    const std::int64_t limit = g.memory_limit.value_or(std::numeric_limits<std::int64_t>::max());
    std::vector<std::size_t> plan(count, 0);
    detail::prefix_cost so_far;
    for (std::size_t n = 0; n < count; ++n) {
      detail::prefix_cost best;
      best.time = std::numeric_limits<double>::infinity();
      for (std::size_t c = 0; c < g.nodes[n].time.size(); ++c) {
        const detail::prefix_cost next = detail::extend(so_far, g.nodes[n], edges[n], plan, c);
        if (!(next.time < best.time) || next.memory + next.transient + to_come[n + 1] > limit) continue;
        best = next;
        plan[n] = c;
      }
      if (best.time == std::numeric_limits<double>::infinity()) return {};
      so_far = best;
    }
    solution out;
    out.feasible = true;
    for (const std::size_t c : plan) out.choices.push_back(static_cast<int>(c));
    const plan_cost cost = evaluate(g, out.choices);
    out.time = cost.time;
    out.memory = cost.memory;
    return out;
  }
};

static_assert(policy<greedy_policy>);

}  // namespace cfp
