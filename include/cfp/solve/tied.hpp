// Cost graphs some of whose nodes choose alike, or stand for many: smaller ones, of one node for each set of these.
#pragma once

#include <cfp/solve/cost_graph.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace cfp::inline v0_1 {

/// Which nodes of a cost graph choose alike, and how many nodes and edges each stands for.
struct tied_nodes {
  std::vector<int> set_of;         ///< per node: its set's number, from 0; the nodes of one have the same choices
  std::vector<double> node_times;  ///< per node
  std::vector<double> edge_times;  ///< per edge

  std::size_t sets() const {
    return set_of.empty() ? 0 : static_cast<std::size_t>(*std::max_element(set_of.begin(), set_of.end())) + 1;
  }

  /// Of nodes, by those of sets.
  std::vector<int> of_nodes(const std::vector<int>& of_sets) const {
    std::vector<int> out;
    for (const int s : set_of) out.push_back(of_sets[static_cast<std::size_t>(s)]);
    return out;
  }
  /// Of sets, by those of their first nodes.
  std::vector<int> of_sets(const std::vector<int>& of_nodes) const {
    std::vector<int> out(sets());
    for (std::size_t n = set_of.size(); n-- > 0;) out[static_cast<std::size_t>(set_of[n])] = of_nodes[n];
    return out;
  }

  /// What a choice of sets costs there is what that of all their nodes would in the graph of all it stands for, but
  /// that the largest transient is of nodes that are there.
  cost_graph operator()(const cost_graph& all) const;
};

namespace detail {

/// Tables times numbers, each once.
class scaled_tables {
 public:
  const shared_table& operator()(const shared_table& t, double by) {
    if (by == 1) return t;
    const auto [at, fresh] = known_.try_emplace({t.id(), by});
    if (fresh) {
      std::vector<double> out = t.all();
      for (double& x : out) x *= by;
      at->second = std::move(out);
    }
    return at->second;
  }

 private:
  std::map<std::pair<const void*, double>, shared_table> known_;
};

inline void add_to(shared_table& sum, const std::vector<double>& more) {
  for (std::size_t c = 0; c < more.size(); ++c) sum.set(c, sum[c] + more[c]);
}

}  // namespace detail

inline cost_graph tied_nodes::operator()(const cost_graph& all) const {
  detail::scaled_tables times;
  cost_graph out;
  out.memory_limit = all.memory_limit;
  out.nodes.resize(sets());
  for (std::size_t n = 0; n < all.nodes.size(); ++n) {
    const cost_node& from = all.nodes[n];
    cost_node& to = out.nodes[static_cast<std::size_t>(set_of[n])];
    const shared_table& time = times(from.time, node_times[n]);
    if (to.time.empty()) {
      to = {from.name, time, std::vector<std::int64_t>(from.memory.size()), from.transient};
    } else {
      detail::add_to(to.time, time);
    }
    for (std::size_t c = 0; c < from.memory.size(); ++c)
      to.memory[c] += static_cast<std::int64_t>(node_times[n]) * from.memory[c];
  }
  for (std::size_t e = 0; e < all.edges.size(); ++e) {
    const cost_edge& edge = all.edges[e];
    const int from = set_of[static_cast<std::size_t>(edge.from)], to = set_of[static_cast<std::size_t>(edge.to)];
    if (from != to) {
      out.edges.push_back({from, to, times(edge.time, edge_times[e])});
      continue;
    }
    shared_table& own = out.nodes[static_cast<std::size_t>(from)].time;
    const std::size_t choices = own.size();
    std::vector<double> both(choices);
    for (std::size_t c = 0; c < choices; ++c) both[c] = edge_times[e] * edge.time[c * choices + c];
    detail::add_to(own, both);
  }
  return out;
}

}  // namespace cfp
