#pragma once

// The oracle: looks at every plan. For tests, and for graphs small enough that nothing cleverer is needed.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include <cfp/core/bad_input.hpp>
#include <cfp/solve/cost_graph.hpp>
#include <cfp/solve/memory/budget.hpp>
#include <cfp/solve/solution.hpp>

namespace cfp::inline v0_1 {

/// The most plans `exhaustive` looks at.
inline constexpr double max_exhaustive_plans = 1e8;

namespace detail {

/// The edges of a node to nodes before it, so that a plan's time can be summed up node by node.
struct edge_to_earlier {
  std::size_t earlier;
  const std::vector<double>* time;
  std::size_t own_stride;
  std::size_t earlier_stride;
};

inline std::vector<std::vector<edge_to_earlier>> edges_to_earlier(const cost_graph& graph) {
  std::vector<std::vector<edge_to_earlier>> edges(graph.nodes.size());
  for (const cost_edge& edge : graph.edges) {
    const auto from = static_cast<std::size_t>(edge.from);
    const auto to = static_cast<std::size_t>(edge.to);
    const std::size_t columns = graph.nodes[to].time.size();
    if (from < to) {
      edges[to].push_back({from, &edge.time.all(), 1, columns});
    } else {
      edges[from].push_back({to, &edge.time.all(), columns, 1});
    }
  }
  return edges;
}

/// Sums over the first nodes of a plan.
struct prefix_cost {
  double time = 0;
  std::int64_t memory = 0;
  std::int64_t transient = 0;
};

inline prefix_cost extend(const prefix_cost& prefix, const cost_node& node, const std::vector<edge_to_earlier>& edges,
                          const std::vector<std::size_t>& plan, std::size_t own) {
  prefix_cost next = prefix;
  next.time += node.time[own];
  for (const edge_to_earlier& edge : edges) {
    next.time += (*edge.time)[own * edge.own_stride + plan[edge.earlier] * edge.earlier_stride];
  }
  next.memory += node.memory[own];
  if (!node.transient.empty()) next.transient = std::max(next.transient, node.transient[own]);
  return next;
}
/// Plan after plan, the last node's choice counted up first.
struct enumeration {
  const cost_graph& graph;
  std::vector<std::vector<edge_to_earlier>> edges = edges_to_earlier(graph);
  std::size_t count = graph.nodes.size();
  std::vector<std::size_t> plan = std::vector<std::size_t>(count, 0);
  std::vector<std::size_t> best{};
  std::vector<prefix_cost> prefix = std::vector<prefix_cost>(count + 1);  // prefix[n]: of the nodes before n
  double best_time = std::numeric_limits<double>::infinity();
  std::int64_t least_memory = std::numeric_limits<std::int64_t>::max();
  bool finite = false;

  /// Looks at every plan; false if the budget runs out before.
  bool run(work_meter& meter) {
    const std::int64_t limit = graph.memory_limit.value_or(std::numeric_limits<std::int64_t>::max());
    std::size_t changed = 0;  // the first node whose choice differs from the plan before
    for (std::uint64_t looked = 0;; ++looked) {
      if (looked % 1024 == 1023 && meter.over()) return false;
      meter.spend(static_cast<double>(count - changed));
      for (std::size_t n = changed; n < count; ++n) {
        prefix[n + 1] = extend(prefix[n], graph.nodes[n], edges[n], plan, plan[n]);
      }
      look_at(prefix[count], limit);
      std::size_t n = count;  // next plan, counting up from the last node
      while (n > 0 && plan[n - 1] + 1 == graph.nodes[n - 1].time.size()) plan[--n] = 0;
      if (n == 0) return true;
      ++plan[n - 1];
      changed = n - 1;
    }
  }

  void look_at(const prefix_cost& cost, std::int64_t limit) {
    if (!(cost.time < std::numeric_limits<double>::infinity())) return;
    const std::int64_t memory = cost.memory + cost.transient;
    least_memory = std::min(least_memory, memory);
    if (memory <= limit && cost.time < best_time) {
      best_time = cost.time;
      best = plan;
    }
    finite = true;
  }
};

}  // namespace detail

/// The best plan by plain enumeration; of equally fast plans the lexicographically smallest. Optimal, with
/// `least_memory` exact, unless the budget runs out (a step is a node of a plan); then it is the best of the
/// first plans, with no bound. Throws `invalid_cost_graph`, and `bad_input` if there are more than
/// `max_exhaustive_plans` plans.
inline solution exhaustive(const cost_graph& graph, const solve_options& options = {}) {
  validate(graph);
  double plans = 1;
  for (const cost_node& node : graph.nodes) plans *= static_cast<double>(node.time.size());
  if (plans > max_exhaustive_plans) {
    throw bad_input("exhaustive search looks at 1e8 plans at most, this graph has about 1e" +
                    std::to_string(static_cast<int>(std::log10(std::min(plans, 1e300)))) +
                    (plans > 1e300 ? " or more" : "") + "; use cfp::solve");
  }

  detail::enumeration all{graph};
  detail::work_meter meter(options);
  const bool complete = all.run(meter);

  solution answer;
  answer.optimal = complete;
  answer.feasible = all.best_time < std::numeric_limits<double>::infinity();
  if (answer.feasible) {
    for (const std::size_t c : all.best) answer.choices.push_back(static_cast<int>(c));
    const plan_cost cost = evaluate(graph, answer.choices);
    answer.time = cost.time;
    answer.memory = cost.memory;
  } else if (all.finite && complete) {
    answer.least_memory = all.least_memory;
  }
  if (complete) answer.bound = answer.time;
  return answer;
}

}  // namespace cfp
