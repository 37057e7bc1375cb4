#pragma once

// The form of a cost graph that the exact solver works on: choices can be dropped from it, at most one edge
// joins two nodes, and edges that do not make their ends depend on each other are gone.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

#include <cfp/solve/cost_graph.hpp>

namespace cfp::inline v0_1::detail {

inline constexpr double infinite_time = std::numeric_limits<double>::infinity();

struct problem_node {
  std::vector<int> original;  // what each choice is called in the cost graph
  std::vector<double> time;
  std::vector<std::int64_t> memory;  // above the least of this node, which is in problem::base_memory
  std::vector<std::int64_t> transient;

  [[nodiscard]] std::size_t size() const { return time.size(); }
};

struct problem_edge {
  std::size_t from;
  std::size_t to;
  shared_table time;  // row-major, a row for each choice of `from`
};

/// Nodes keep their indices for good. A plan is one index into each node's choices.
struct problem {
  std::vector<problem_node> nodes;
  std::vector<problem_edge> edges;
  std::int64_t base_memory = 0;
  bool dead = false;  // some node has no choice left: no plan
};

using plan_indices = std::vector<std::size_t>;
using choice_mask = std::vector<std::vector<char>>;  // per node and choice: 1 to keep it

/// Sums over a plan; memory includes the base.
struct plan_sums {
  double time = 0;
  std::int64_t memory = 0;
  std::int64_t transient = 0;
};

inline plan_sums sums(const problem& p, const plan_indices& plan) {
  plan_sums result;
  result.memory = p.base_memory;
  for (std::size_t n = 0; n < plan.size(); ++n) {
    result.time += p.nodes[n].time[plan[n]];
    result.memory += p.nodes[n].memory[plan[n]];
    result.transient = std::max(result.transient, p.nodes[n].transient[plan[n]]);
  }
  for (const problem_edge& e : p.edges) {
    result.time += e.time[plan[e.from] * p.nodes[e.to].size() + plan[e.to]];
  }
  return result;
}

inline std::vector<int> original_choices(const problem& p, const plan_indices& plan) {
  std::vector<int> choices(plan.size());
  for (std::size_t n = 0; n < plan.size(); ++n) choices[n] = p.nodes[n].original[plan[n]];
  return choices;
}

/// Per node the indices of its edges.
inline std::vector<std::vector<std::size_t>> incident_edges(const problem& p) {
  std::vector<std::vector<std::size_t>> incident(p.nodes.size());
  for (std::size_t e = 0; e < p.edges.size(); ++e) {
    incident[p.edges[e].from].push_back(e);
    incident[p.edges[e].to].push_back(e);
  }
  return incident;
}

/// Whether a table of several rows and columns is a sum of a number per row and a number per column, exactly.
inline bool is_loose(const std::vector<double>& time, std::size_t rows) {
  const std::size_t columns = time.size() / rows;
  const double corner = time[0];
  if (corner == infinite_time) return false;
  for (std::size_t a = 0; a < rows; ++a) {
    const double* row = time.data() + a * columns;
    for (std::size_t b = 0; b < columns; ++b)
      if (row[b] == infinite_time || row[b] != row[0] + (time[b] - corner)) return false;
  }
  return true;
}

/// Moves an edge whose ends do not depend on each other into its nodes: one has a single choice, or the table is loose.
inline void absorb(const std::vector<double>& time, problem_node& from, problem_node& to) {
  const std::size_t rows = from.size(), columns = to.size();
  if (rows == 1) {
    for (std::size_t b = 0; b < columns; ++b) to.time[b] += time[b];
    return;
  }
  for (std::size_t a = 0; a < rows; ++a) from.time[a] += time[a * columns];
  if (columns == 1) return;
  for (std::size_t b = 0; b < columns; ++b) to.time[b] += time[b] - time[0];
}

/// The choices of every node that are kept.
struct kept_choices {
  std::vector<std::size_t> all, begin{0};  // of node n: all[begin[n]] to all[begin[n + 1]]
  std::vector<std::size_t> mask;           // of node n: a number, equal for nodes that keep the same ones

  [[nodiscard]] std::size_t count(std::size_t n) const { return begin[n + 1] - begin[n]; }
};

/// Leaves the nodes of `p` only the choices in `keep`.
inline kept_choices keep_in_nodes(problem& p, const choice_mask& keep) {
  kept_choices kept;
  std::map<std::vector<char>, std::size_t> masks;
  for (std::size_t n = 0; n < p.nodes.size(); ++n) {
    problem_node& node = p.nodes[n];
    kept.mask.push_back(masks.try_emplace(keep[n], masks.size()).first->second);
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    std::size_t size = 0;
    for (std::size_t c = 0; c < node.size(); ++c) {
      if (!keep[n][c]) continue;
      kept.all.push_back(c);
      least = std::min(least, node.memory[c]);
      node.original[size] = node.original[c];
      node.time[size] = node.time[c];
      node.memory[size] = node.memory[c];
      node.transient[size++] = node.transient[c];
    }
    kept.begin.push_back(kept.all.size());
    node.original.resize(size);
    node.time.resize(size);
    node.memory.resize(size);
    node.transient.resize(size);
    if (size == 0) {
      p.dead = true;
      continue;
    }
    for (std::int64_t& bytes : node.memory) bytes -= least;
    p.base_memory += least;
  }
  return kept;
}

/// Moves those edges of `p` into its nodes whose ends do not depend on each other. Only where that is exact.
inline problem without_loose_edges(problem p) {
  std::map<std::pair<const void*, std::size_t>, bool> loose;  // of a table with so many rows
  std::vector<problem_edge> left;
  for (problem_edge& edge : p.edges) {
    problem_node &from = p.nodes[edge.from], &to = p.nodes[edge.to];
    if (from.size() > 1 && to.size() > 1) {
      const auto [known, fresh] = loose.try_emplace({edge.time.id(), from.size()}, false);
      if (fresh) known->second = is_loose(edge.time, from.size());
      if (!known->second) {
        left.push_back(edge);
        continue;
      }
    }
    absorb(edge.time, from, to);
  }
  p.edges = std::move(left);
  return p;
}

/// `p` with only the choices in `keep`. Edges that shared a table still do where their ends keep the same.
inline problem keep_only(problem p, const choice_mask& keep) {
  const kept_choices kept = keep_in_nodes(p, keep);
  if (p.dead) {
    p.edges.clear();
    return p;
  }
  std::vector<problem_edge> edges;
  std::map<std::tuple<const void*, std::size_t, std::size_t>, shared_table> made;
  for (const problem_edge& edge : p.edges) {
    const auto [at, fresh] = made.try_emplace({edge.time.id(), kept.mask[edge.from], kept.mask[edge.to]});
    if (fresh) {
      const double* all = edge.time.data();
      const std::size_t columns = keep[edge.to].size();
      std::vector<double> time;
      time.reserve(kept.count(edge.from) * kept.count(edge.to));
      for (std::size_t a = kept.begin[edge.from]; a < kept.begin[edge.from + 1]; ++a)
        for (std::size_t b = kept.begin[edge.to]; b < kept.begin[edge.to + 1]; ++b)
          time.push_back(all[kept.all[a] * columns + kept.all[b]]);
      at->second = std::move(time);
    }
    edges.push_back({edge.from, edge.to, at->second});
  }
  p.edges = std::move(edges);
  return without_loose_edges(std::move(p));
}

/// A mask that keeps every choice of `p`.
inline choice_mask keep_all(const problem& p) {
  choice_mask keep(p.nodes.size());
  for (std::size_t n = 0; n < p.nodes.size(); ++n) keep[n].assign(p.nodes[n].size(), 1);
  return keep;
}

}  // namespace cfp::detail
