// From a cost graph to the problem that solvers work on.
#pragma once

#include <cfp/solve/problem.hpp>

namespace cfp::inline v0_1::detail {

/// Parallel edges of a cost graph between choices that are kept, added up: from the lower to the higher node.
inline std::vector<double> merged_times(const cost_graph& graph, const kept_choices& kept,
                                        const std::vector<const cost_edge*>& parallel, std::size_t low,
                                        std::size_t high) {
  std::vector<double> merged(kept.count(low) * kept.count(high));
  for (const cost_edge* edge : parallel) {
    const std::vector<double>& time = edge->time;
    const std::size_t columns = graph.nodes[static_cast<std::size_t>(edge->to)].time.size();
    const bool turned = edge->from > edge->to, first = edge == parallel.front();
    double* sum = merged.data();
    for (std::size_t a = kept.begin[low]; a < kept.begin[low + 1]; ++a)
      for (std::size_t b = kept.begin[high]; b < kept.begin[high + 1]; ++b, ++sum) {
        const double one =
            turned ? time[kept.all[b] * columns + kept.all[a]] : time[kept.all[a] * columns + kept.all[b]];
        *sum = first ? one : *sum + one;
      }
  }
  return merged;
}

/// The edges of a cost graph between choices that are kept, each from the lower to the higher node, parallel ones added
/// up. What is made of the same tables is one table.
inline std::vector<problem_edge> merged_edges(const cost_graph& graph, const kept_choices& kept) {
  std::vector<const cost_edge*> order;
  for (const cost_edge& edge : graph.edges) order.push_back(&edge);
  const auto ends = [](const cost_edge& e) {
    return std::pair(static_cast<std::size_t>(std::min(e.from, e.to)),
                     static_cast<std::size_t>(std::max(e.from, e.to)));
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](const cost_edge* a, const cost_edge* b) { return ends(*a) < ends(*b); });
  std::vector<problem_edge> merged;
  using tables = std::vector<std::pair<const void*, bool>>;  // of parallel edges, and whether they are turned
  std::map<std::tuple<tables, std::size_t, std::size_t>, shared_table> made;
  for (auto begin = order.begin(); begin != order.end();) {
    const auto [low, high] = ends(**begin);
    std::vector<const cost_edge*> parallel;
    tables of;
    for (; begin != order.end() && ends(**begin) == std::pair(low, high); ++begin) {
      parallel.push_back(*begin);
      of.emplace_back((*begin)->time.id(), (*begin)->from > (*begin)->to);
    }
    const auto [at, fresh] = made.try_emplace({std::move(of), kept.mask[low], kept.mask[high]});
    if (fresh) at->second = merged_times(graph, kept, parallel, low, high);
    merged.push_back({low, high, at->second});
  }
  return merged;
}

/// The problem of a valid cost graph, without its forbidden choices.
inline problem make_problem(const cost_graph& graph) {
  problem p;
  p.nodes.resize(graph.nodes.size());
  choice_mask keep(graph.nodes.size());
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const cost_node& node = graph.nodes[n];
    p.nodes[n].original.resize(node.time.size());
    std::iota(p.nodes[n].original.begin(), p.nodes[n].original.end(), 0);
    for (const double time : node.time) keep[n].push_back(time < infinite_time);
    p.nodes[n].time = node.time;
    p.nodes[n].memory = node.memory;
    p.nodes[n].transient = node.transient;
    p.nodes[n].transient.resize(node.time.size(), 0);
  }
  const kept_choices kept = keep_in_nodes(p, keep);
  if (p.dead) return p;
  p.edges = merged_edges(graph, kept);
  return without_loose_edges(std::move(p));
}

}  // namespace cfp::detail
