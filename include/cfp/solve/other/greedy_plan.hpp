// A plan without search: node after node, what is cheapest given the nodes before it.
#pragma once

#include <cfp/solve/other/exhaustive.hpp>

#include <optional>

namespace cfp::inline v0_1::detail {

/// Never looks ahead, except that what it takes leaves memory for the leanest choices of the nodes to come. Nothing
/// where that leads nowhere, even if a plan exists. The graph must be valid.
inline std::optional<std::vector<int>> greedy_plan(const cost_graph& g) {
  const auto edges = edges_to_earlier(g);
  const std::size_t count = g.nodes.size();
  std::vector<std::int64_t> to_come(count + 1, 0);  // least memory of the nodes from here on
  for (std::size_t n = count; n > 0; --n)
    to_come[n - 1] = to_come[n] + *std::min_element(g.nodes[n - 1].memory.begin(), g.nodes[n - 1].memory.end());
  const std::int64_t limit = g.memory_limit.value_or(std::numeric_limits<std::int64_t>::max());
  std::vector<std::size_t> plan(count, 0);
  prefix_cost so_far;
  for (std::size_t n = 0; n < count; ++n) {
    prefix_cost best;
    best.time = std::numeric_limits<double>::infinity();
    for (std::size_t c = 0; c < g.nodes[n].time.size(); ++c) {
      const prefix_cost next = extend(so_far, g.nodes[n], edges[n], plan, c);
      if (!(next.time < best.time) || next.memory + next.transient + to_come[n + 1] > limit) continue;
      best = next;
      plan[n] = c;
    }
    if (best.time == std::numeric_limits<double>::infinity()) return std::nullopt;
    so_far = best;
  }
  if (so_far.memory + so_far.transient > limit) return std::nullopt;  // no nodes, and not even that fits
  return std::vector<int>(plan.begin(), plan.end());
}

}  // namespace cfp::detail
