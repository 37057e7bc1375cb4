// Where another plan loses against a solved one.
#pragma once

#include <cfp/core/bad_input.hpp>
#include <cfp/solve/exact/exact.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <vector>

namespace cfp::inline v0_1 {

/// What one node adds to the difference between two plans.
struct node_difference {
  int node;
  int named, best;      ///< the choices
  double own;           ///< of the node's times
  double joint;         ///< of its edges' times, of each edge half (the other half is the other end's)
  std::int64_t memory;  ///< of its memory; transients apart

  [[nodiscard]] double time() const { return own + joint; }
};

/// Why a named plan loses against the best one. All differences are the named plan's figure less the best plan's.
struct comparison {
  plan_cost named, best;
  double loss = 0;  ///< the times of all `nodes`, summed in their order; +infinity if the named plan is forbidden
  std::vector<node_difference> nodes;  ///< where choices differ or an edge does; largest loss first
  std::int64_t transient = 0;   ///< of the largest transients: with the memory of all `nodes` the difference in memory
  std::int64_t over_limit = 0;  ///< by how many bytes the named plan breaks the limit
  std::vector<int> forbidden_nodes;  ///< whose choice in the named plan is forbidden
  std::vector<int> forbidden_edges;  ///< whose pair of choices in the named plan is forbidden
};

/// Where a named plan loses against the best one. Throws `invalid_cost_graph`, and `bad_input` if a plan
/// does not fit the graph or the best one is forbidden.
inline comparison compare(const cost_graph& g, const std::vector<int>& named, const std::vector<int>& best) {
  validate(g);
  comparison out;
  out.named = evaluate(g, named);
  out.best = evaluate(g, best);
  if (out.best.time == detail::infinite_time) throw bad_input("the plan to compare with must not be forbidden");
  if (g.memory_limit) out.over_limit = std::max<std::int64_t>(0, out.named.memory - *g.memory_limit);
  std::vector<node_difference> all;
  std::vector<char> touched(g.nodes.size(), 0);
  out.transient = out.named.memory - out.best.memory;
  for (std::size_t n = 0; n < g.nodes.size(); ++n) {
    const cost_node& node = g.nodes[n];
    const auto a = static_cast<std::size_t>(named[n]), b = static_cast<std::size_t>(best[n]);
    all.push_back(
        {static_cast<int>(n), named[n], best[n], node.time[a] - node.time[b], 0, node.memory[a] - node.memory[b]});
    touched[n] = a != b;
    out.transient -= all.back().memory;
    if (node.time[a] == detail::infinite_time) out.forbidden_nodes.push_back(static_cast<int>(n));
  }
  for (std::size_t e = 0; e < g.edges.size(); ++e) {
    const cost_edge& edge = g.edges[e];
    const auto from = static_cast<std::size_t>(edge.from), to = static_cast<std::size_t>(edge.to);
    const auto time = [&](const std::vector<int>& plan) {
      return edge
          .time[static_cast<std::size_t>(plan[from]) * g.nodes[to].time.size() + static_cast<std::size_t>(plan[to])];
    };
    const double difference = time(named) - time(best);
    if (difference == detail::infinite_time) out.forbidden_edges.push_back(static_cast<int>(e));
    for (const std::size_t end : {from, to}) {
      all[end].joint += difference / 2;
      if (difference != 0) touched[end] = 1;
    }
  }
  for (const node_difference& d : all)
    if (touched[static_cast<std::size_t>(d.node)]) out.nodes.push_back(d);
  std::stable_sort(out.nodes.begin(), out.nodes.end(),
                   [](const node_difference& a, const node_difference& b) { return a.time() > b.time(); });
  for (const node_difference& d : out.nodes) out.loss += d.time();
  return out;
}

}  // namespace cfp
