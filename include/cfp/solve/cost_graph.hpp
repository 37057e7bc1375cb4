#pragma once

// Cost graphs: nodes that each take one of several choices, priced one by one and in pairs.
//
// The solvers in this folder know nothing but these numbers. A time is in any unit the caller likes
// (milliseconds, say); +infinity forbids a choice or a pair of choices. Memory is in bytes.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

#include <cfp/core/bad_input.hpp>
#include <cfp/solve/shared_table.hpp>

namespace cfp::inline v0_1 {

/// One decision. `time[c]` and `memory[c]` belong to choice `c`; memory adds up over the nodes, while of
/// `transient` (same length, or empty for all zeros) only the largest over all nodes counts.
struct cost_node {
  std::string name;
  shared_table time;
  std::vector<std::int64_t> memory;
  std::vector<std::int64_t> transient;
};

/// What two decisions cost together: `time[a * choices(to) + b]` for choice `a` of `from` and `b` of `to`.
/// Several edges may join the same two nodes; their times add.
struct cost_edge {
  int from;
  int to;
  shared_table time;
};

/// The whole problem: minimise the sum of times, subject to (sum of memory) + (largest transient) <= limit.
struct cost_graph {
  std::vector<cost_node> nodes;
  std::vector<cost_edge> edges;
  std::optional<std::int64_t> memory_limit;
};

/// What one assignment of choices costs: time in the graph's unit, memory (sum plus largest transient) in
/// bytes.
struct plan_cost {
  double time;
  std::int64_t memory;
};

/// Thrown by `validate` and everything that calls it; `what()` is one sentence naming the node or edge.
class invalid_cost_graph : public bad_input {
 public:
  using bad_input::bad_input;
};

/// The most bytes that the largest memory figures of all nodes may sum to: up to here every sum is exact as a
/// `double` too, which the solvers' bounds rely on (8 PiB).
inline constexpr std::int64_t max_total_memory = std::int64_t{1} << 53;

/// The most that the largest finite times of all nodes and edges may sum to, in magnitude.
inline constexpr double max_total_time = 1e300;

namespace detail {

inline std::string node_label(const cost_graph& graph, std::size_t node) {
  return "node " + std::to_string(node) + " '" + graph.nodes[node].name + "'";
}

inline std::string edge_label(const cost_edge& edge, std::size_t index) {
  return "edge " + std::to_string(index) + " (" + std::to_string(edge.from) + " -> " + std::to_string(edge.to) + ")";
}

/// The largest finite magnitude among `times`; throws if one is NaN or minus infinity.
template <class Owner>
double check_times(const std::vector<double>& times, const Owner& owner, const char* entry) {
  double largest = 0;
  for (std::size_t i = 0; i < times.size(); ++i) {
    const double magnitude = std::fabs(times[i]);
    if (magnitude <= std::numeric_limits<double>::max()) {
      largest = magnitude > largest ? magnitude : largest;
    } else if (!(times[i] > 0)) {
      throw invalid_cost_graph(
          owner() + ": the time of " + entry + " " + std::to_string(i) +
          " must be a finite number or +infinity, got: " + (std::isnan(times[i]) ? "nan" : "-inf"));
    }
  }
  return largest;
}

/// The largest of `bytes`; throws if there is not one for each choice, or if one is negative or too large.
template <class Owner>
std::int64_t check_memory(const std::vector<std::int64_t>& bytes, std::size_t choices, const Owner& owner,
                          const char* kind) {
  if (bytes.size() != choices) {
    throw invalid_cost_graph(owner() + ": " + kind + " must have one entry for each of the " + std::to_string(choices) +
                             " choices, got: " + std::to_string(bytes.size()));
  }
  std::int64_t largest = 0;
  for (std::size_t c = 0; c < choices; ++c) {
    if (bytes[c] < 0) {
      throw invalid_cost_graph(owner() + ": the " + kind + " of choice " + std::to_string(c) +
                               " must not be negative, got: " + std::to_string(bytes[c]));
    }
    largest = bytes[c] > largest ? bytes[c] : largest;
  }
  return largest;
}

template <class Owner>
void check_total_memory(std::int64_t so_far, std::int64_t more, const Owner& owner) {
  if (more > max_total_memory - so_far) {
    throw invalid_cost_graph(owner() + ": the largest memory figures up to here must sum to at most " +
                             std::to_string(max_total_memory) + " bytes, got: " + std::to_string(so_far) + " + " +
                             std::to_string(more) + "; forbid a choice by an infinite time instead");
  }
}

template <class Owner>
void check_total_time(double total, const Owner& owner) {
  if (total > max_total_time) {
    throw invalid_cost_graph(owner() + ": the largest finite times up to here must sum to at most 1e300 in magnitude" +
                             ", got more; forbid a choice by an infinite time instead");
  }
}

inline void check_edge(const cost_graph& graph, std::size_t index) {
  const cost_edge& edge = graph.edges[index];
  const auto owner = [&] { return edge_label(edge, index); };
  for (const int end : {edge.from, edge.to}) {
    if (end < 0 || static_cast<std::size_t>(end) >= graph.nodes.size()) {
      throw invalid_cost_graph(owner() + ": both ends must be nodes, at least 0 and less than " +
                               std::to_string(graph.nodes.size()) + ", got: " + std::to_string(end));
    }
  }
  if (edge.from == edge.to) {
    throw invalid_cost_graph(owner() + ": an edge must join two different nodes; add its times to the node instead");
  }
  const std::size_t rows = graph.nodes[static_cast<std::size_t>(edge.from)].time.size();
  const std::size_t columns = graph.nodes[static_cast<std::size_t>(edge.to)].time.size();
  if (edge.time.size() != rows * columns) {
    throw invalid_cost_graph(owner() + ": the table must have " + std::to_string(rows) + " x " +
                             std::to_string(columns) + " entries, got: " + std::to_string(edge.time.size()));
  }
}

}  // namespace detail

/// Throws `invalid_cost_graph` unless the graph is well formed: every node has a choice, every table has the
/// size its nodes ask for, edges join two different existing nodes, times are finite or +infinity, memory is
/// not negative, and sums of times and memory stay within `max_total_time` and `max_total_memory`. A negative
/// `memory_limit` is well formed (and cannot be met).
inline void validate(const cost_graph& graph) {
  std::int64_t total_memory = 0;
  std::int64_t largest_transient = 0;
  double total_time = 0;
  std::unordered_map<const void*, double> checked;  // of every table, the largest magnitude
  const auto check = [&](const shared_table& times, const auto& owner, const char* entry) {
    const auto [at, fresh] = checked.try_emplace(times.id(), 0.0);
    if (fresh) at->second = detail::check_times(times, owner, entry);
    return at->second;
  };
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const cost_node& node = graph.nodes[n];
    const auto owner = [&] { return detail::node_label(graph, n); };
    if (node.time.empty()) throw invalid_cost_graph(owner() + ": a node needs at least one choice, got none");
    total_time += check(node.time, owner, "choice");
    detail::check_total_time(total_time, owner);
    const std::int64_t memory = detail::check_memory(node.memory, node.time.size(), owner, "memory");
    detail::check_total_memory(total_memory, memory, owner);
    total_memory += memory;
    if (node.transient.empty()) continue;
    const std::int64_t transient = detail::check_memory(node.transient, node.time.size(), owner, "transient");
    detail::check_total_memory(0, transient, owner);
    largest_transient = transient > largest_transient ? transient : largest_transient;
  }
  detail::check_total_memory(total_memory, largest_transient, [] { return std::string("the largest transient"); });
  for (std::size_t e = 0; e < graph.edges.size(); ++e) {
    detail::check_edge(graph, e);
    const auto owner = [&] { return detail::edge_label(graph.edges[e], e); };
    total_time += check(graph.edges[e].time, owner, "entry");
    detail::check_total_time(total_time, owner);
  }
}

/// What `choices` (one per node) cost; time is +infinity if they are forbidden. The graph must be valid;
/// throws `bad_input` if `choices` does not fit it. The memory limit plays no part.
inline plan_cost evaluate(const cost_graph& graph, const std::vector<int>& choices) {
  if (choices.size() != graph.nodes.size()) {
    throw bad_input("a plan needs one choice for each of the " + std::to_string(graph.nodes.size()) +
                    " nodes, got: " + std::to_string(choices.size()));
  }
  plan_cost cost{0, 0};
  std::int64_t largest_transient = 0;
  for (std::size_t n = 0; n < choices.size(); ++n) {
    const cost_node& node = graph.nodes[n];
    const auto c = static_cast<std::size_t>(choices[n]);
    if (choices[n] < 0 || c >= node.time.size()) {
      throw bad_input(detail::node_label(graph, n) + ": the choice must be at least 0 and less than " +
                      std::to_string(node.time.size()) + ", got: " + std::to_string(choices[n]));
    }
    cost.time += node.time[c];
    cost.memory += node.memory[c];
    if (!node.transient.empty() && node.transient[c] > largest_transient) largest_transient = node.transient[c];
  }
  for (const cost_edge& edge : graph.edges) {
    const auto from = static_cast<std::size_t>(edge.from);
    const auto to = static_cast<std::size_t>(edge.to);
    const std::size_t columns = graph.nodes[to].time.size();
    cost.time += edge.time[static_cast<std::size_t>(choices[from]) * columns + static_cast<std::size_t>(choices[to])];
  }
  cost.memory += largest_transient;
  return cost;
}

}  // namespace cfp
