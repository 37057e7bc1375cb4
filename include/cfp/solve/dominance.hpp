#pragma once

// Dominance: drops choices that another choice of the same node can always replace at no cost.
//
// Choice c goes if a surviving c' has u(c') + sum over edges of max_x (T(c',x) - T(c,x)) <= u(c), where x
// runs over the surviving choices of the neighbour and a pair forbidden to c counts for nothing. Choices go
// one at a time, so of two equal ones the first stays. Where memory counts, c' must need no more of it, in
// either figure.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "problem.hpp"

namespace cfp::inline v0_1::detail {

/// One node while its choices are compared: the choices that are left, and for each the time it takes at
/// least
/// (`base`) and what comes on top, depending on the neighbours' choices (`excess`, one row per choice).
class dominance_view {
 public:
  dominance_view(const problem& p, const std::vector<std::size_t>& incident, const choice_mask& keep,
                 std::size_t node)
      : node_(p.nodes[node]) {
    for (std::size_t c = 0; c < node_.size(); ++c) {
      if (keep[node][c]) left_.push_back(c);
    }
    base_.resize(left_.size());
    for (std::size_t i = 0; i < left_.size(); ++i) base_[i] = node_.time[left_[i]];
    for (const std::size_t e : incident) add_edge(p, p.edges[e], keep, node);
  }

  /// The choices to drop: the dead ones, whose every plan is forbidden, and the dominated ones.
  [[nodiscard]] std::vector<std::size_t> droppable(bool memory_counts) const {
    std::vector<std::size_t> order;
    std::vector<std::size_t> dropped;
    for (std::size_t i = 0; i < left_.size(); ++i) {
      if (base_[i] < infinite_time) {
        order.push_back(i);
      } else {
        dropped.push_back(left_[i]);
      }
    }
    std::sort(order.begin(), order.end(), [this](std::size_t a, std::size_t b) {  // dominators come first
      if (base_[a] != base_[b]) return base_[a] < base_[b];
      const std::int64_t memory_a = node_.memory[left_[a]];
      const std::int64_t memory_b = node_.memory[left_[b]];
      return memory_a != memory_b ? memory_a < memory_b : a < b;
    });
    std::vector<std::size_t> survivors;
    for (const std::size_t i : order) {
      const bool dominated = std::any_of(survivors.begin(), survivors.end(), [&](std::size_t other) {
        return (!memory_counts || no_more_memory(left_[other], left_[i])) && replaces(other, i);
      });
      if (dominated) {
        dropped.push_back(left_[i]);
      } else {
        survivors.push_back(i);
      }
    }
    return dropped;
  }

 private:
  struct edge_rows {
    std::vector<double> excess;
    std::size_t width;
  };

  void add_edge(const problem& p, const problem_edge& edge, const choice_mask& keep, std::size_t node) {
    const bool is_from = edge.from == node;
    const std::size_t other = is_from ? edge.to : edge.from;
    const std::size_t columns = p.nodes[edge.to].size();
    edge_rows rows{{}, 0};
    for (std::size_t x = 0; x < p.nodes[other].size(); ++x)
      rows.width += static_cast<std::size_t>(keep[other][x]);
    rows.excess.reserve(rows.width * left_.size());
    for (std::size_t i = 0; i < left_.size(); ++i) {
      const std::size_t c = left_[i];
      const std::size_t begin = rows.excess.size();
      double least = infinite_time;
      for (std::size_t x = 0; x < p.nodes[other].size(); ++x) {
        if (!keep[other][x]) continue;
        const double time = is_from ? edge.time[c * columns + x] : edge.time[x * columns + c];
        rows.excess.push_back(time);
        least = std::min(least, time);
      }
      base_[i] += least;
      if (least == infinite_time) continue;
      for (std::size_t k = begin; k < rows.excess.size(); ++k) rows.excess[k] -= least;
    }
    edges_.push_back(std::move(rows));
  }

  [[nodiscard]] bool no_more_memory(std::size_t c, std::size_t than) const {
    return node_.memory[c] <= node_.memory[than] && node_.transient[c] <= node_.transient[than];
  }

  /// Each edge's maximum is at least 0, because the least excess of a row is 0: so once over, always over.
  [[nodiscard]] bool replaces(std::size_t better, std::size_t worse) const {
    const double allowed = base_[worse] - base_[better];
    double total = 0;
    for (const edge_rows& rows : edges_) {
      const double* a = rows.excess.data() + better * rows.width;
      const double* b = rows.excess.data() + worse * rows.width;
      double largest = 0;
      for (std::size_t x = 0; x < rows.width; ++x) {
        if (b[x] == infinite_time || !(a[x] - b[x] > largest)) continue;
        largest = a[x] - b[x];
        if (total + largest > allowed) return false;
      }
      total += largest;
    }
    return total <= allowed;
  }

  const problem_node& node_;
  std::vector<std::size_t> left_;
  std::vector<double> base_;
  std::vector<edge_rows> edges_;
};

/// Looks at each node this often at most: a drop can enable the next one at a neighbour, but rarely for long.
inline constexpr int max_dominance_visits = 6;

/// `p` without dominated and dead choices. Keeps at least one best plan; where `memory_counts`, one for every
/// bound on the sum of memory and on the largest transient.
inline problem without_dominated(const problem& p, bool memory_counts) {
  if (p.dead) return p;
  const auto incident = incident_edges(p);
  choice_mask keep = keep_all(p);
  std::vector<int> visits(p.nodes.size(), 0);
  std::vector<char> queued(p.nodes.size(), 1);
  std::deque<std::size_t> queue;
  for (std::size_t n = 0; n < p.nodes.size(); ++n) queue.push_back(n);
  while (!queue.empty()) {
    const std::size_t n = queue.front();
    queue.pop_front();
    queued[n] = 0;
    if (++visits[n] > max_dominance_visits) continue;
    const auto dropped = dominance_view(p, incident[n], keep, n).droppable(memory_counts);
    for (const std::size_t c : dropped) keep[n][c] = 0;
    if (dropped.empty()) continue;
    for (const std::size_t e : incident[n]) {
      const std::size_t other = p.edges[e].from == n ? p.edges[e].to : p.edges[e].from;
      if (!queued[other]) queue.push_back(other);
      queued[other] = 1;
    }
  }
  return keep_only(p, keep);
}

}  // namespace cfp::detail
