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
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include <cfp/solve/problem.hpp>

namespace cfp::inline v0_1::detail {

/// One node while its choices are compared: the choices that are left, and for each the time it takes at
/// least
/// (`base`) and what comes on top, depending on the neighbours' choices (`excess`, one row per choice). The
/// memory is kept for the next node.
class dominance_view {
 public:
  explicit dominance_view(const problem& p) : problem_(p) {}

  /// The choices to drop: the dead ones, whose every plan is forbidden, and the dominated ones.
  const std::vector<std::size_t>& droppable(const std::vector<std::size_t>& incident, const choice_mask& keep,
                                            std::size_t node, bool memory_counts) {
    node_ = &problem_.nodes[node];
    for (auto* v : {&left_, &order_, &survivors_, &dropped_}) v->clear();
    base_.clear();
    excess_.clear();
    edges_.clear();
    for (std::size_t c = 0; c < node_->size(); ++c) {
      if (!keep[node][c]) continue;
      left_.push_back(c);
      base_.push_back(node_->time[c]);
    }
    for (const std::size_t e : incident) add_edge(problem_.edges[e], keep, node);
    drop(memory_counts);
    return dropped_;
  }

 private:
  struct edge_rows {
    std::size_t begin, width;  ///< in `excess`
  };

  void drop(bool memory_counts) {
    for (std::size_t i = 0; i < left_.size(); ++i) {
      if (base_[i] < infinite_time) {
        order_.push_back(i);
      } else {
        dropped_.push_back(left_[i]);
      }
    }
    std::sort(order_.begin(), order_.end(), [this](std::size_t a, std::size_t b) {  // dominators come first
      if (base_[a] != base_[b]) return base_[a] < base_[b];
      const std::int64_t memory_a = node_->memory[left_[a]];
      const std::int64_t memory_b = node_->memory[left_[b]];
      return memory_a != memory_b ? memory_a < memory_b : a < b;
    });
    for (const std::size_t i : order_) {
      const bool dominated = std::any_of(survivors_.begin(), survivors_.end(), [&](std::size_t other) {
        return (!memory_counts || no_more_memory(left_[other], left_[i])) && replaces(other, i);
      });
      if (dominated) {
        dropped_.push_back(left_[i]);
      } else {
        survivors_.push_back(i);
      }
    }
  }

  void add_edge(const problem_edge& edge, const choice_mask& keep, std::size_t node) {
    const double* times = edge.time.data();
    const bool is_from = edge.from == node;
    const std::size_t other = is_from ? edge.to : edge.from;
    const std::size_t columns = problem_.nodes[edge.to].size();
    const std::size_t states = problem_.nodes[other].size();
    edge_rows rows{excess_.size(), 0};
    for (std::size_t x = 0; x < states; ++x) rows.width += static_cast<std::size_t>(keep[other][x]);
    for (std::size_t i = 0; i < left_.size(); ++i) {
      const std::size_t c = left_[i];
      const std::size_t begin = excess_.size();
      double least = infinite_time;
      for (std::size_t x = 0; x < states; ++x) {
        if (!keep[other][x]) continue;
        const double time = is_from ? times[c * columns + x] : times[x * columns + c];
        excess_.push_back(time);
        least = std::min(least, time);
      }
      base_[i] += least;
      if (least == infinite_time) continue;
      for (std::size_t k = begin; k < excess_.size(); ++k) excess_[k] -= least;
    }
    edges_.push_back(rows);
  }

  [[nodiscard]] bool no_more_memory(std::size_t c, std::size_t than) const {
    return node_->memory[c] <= node_->memory[than] && node_->transient[c] <= node_->transient[than];
  }

  /// Each edge's maximum is at least 0, because the least excess of a row is 0: so once over, always over.
  [[nodiscard]] bool replaces(std::size_t better, std::size_t worse) const {
    const double allowed = base_[worse] - base_[better];
    double total = 0;
    for (const edge_rows& rows : edges_) {
      const double* a = excess_.data() + rows.begin + better * rows.width;
      const double* b = excess_.data() + rows.begin + worse * rows.width;
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

  const problem& problem_;
  const problem_node* node_ = nullptr;
  std::vector<std::size_t> left_, order_, survivors_, dropped_;
  std::vector<double> base_, excess_;
  std::vector<edge_rows> edges_;
};

/// What may be dropped of a node, remembered: a node whose numbers, edges and neighbours' choices are those of one seen
/// before, in another copy of a layer, drops the same.
class known_dominance {
 public:
  known_dominance(const problem& p, const choice_mask& keep, bool memory_counts)
      : p_(p), keep_(keep), memory_counts_(memory_counts), view_(p), incident_(incident_edges(p)) {
    std::map<std::tuple<std::vector<double>, std::vector<std::int64_t>, std::vector<std::int64_t>>, std::size_t> alike;
    for (std::size_t n = 0; n < p.nodes.size(); ++n) {
      const problem_node& node = p.nodes[n];
      numbers_.push_back(alike.try_emplace({node.time, node.memory, node.transient}, alike.size()).first->second);
      mask_.push_back(0);
      changed(n);
    }
  }

  const std::vector<std::size_t>& incident(std::size_t n) const { return incident_[n]; }

  const std::vector<std::size_t>& droppable(std::size_t n) {
    std::vector<std::uintptr_t> key{numbers_[n], mask_[n]};
    for (const std::size_t e : incident_[n]) {
      const problem_edge& edge = p_.edges[e];
      const bool is_from = edge.from == n;
      key.push_back(reinterpret_cast<std::uintptr_t>(edge.time.id()));
      key.push_back(2 * mask_[is_from ? edge.to : edge.from] + (is_from ? 1 : 0));
    }
    const auto [at, fresh] = known_.try_emplace(std::move(key));
    if (fresh) at->second = view_.droppable(incident_[n], keep_, n, memory_counts_);
    return at->second;
  }

  /// A node keeps other choices now.
  void changed(std::size_t n) { mask_[n] = masks_.try_emplace(keep_[n], masks_.size()).first->second; }

 private:
  const problem& p_;
  const choice_mask& keep_;
  bool memory_counts_;
  dominance_view view_;
  std::vector<std::vector<std::size_t>> incident_;
  std::vector<std::size_t> numbers_, mask_;  // per node: equal ones have equal figures, and keep the same
  std::map<std::vector<char>, std::size_t> masks_;
  std::map<std::vector<std::uintptr_t>, std::vector<std::size_t>> known_;
};

/// Looks at each node this often at most: a drop can enable the next one at a neighbour, but rarely for long.
inline constexpr int max_dominance_visits = 6;

/// `p` without dominated and dead choices. Keeps at least one best plan; where `memory_counts`, one for every
/// bound on the sum of memory and on the largest transient.
inline problem without_dominated(problem p, bool memory_counts) {
  if (p.dead) return p;
  choice_mask keep = keep_all(p);
  std::vector<int> visits(p.nodes.size(), 0);
  std::vector<char> queued(p.nodes.size(), 1);
  known_dominance known(p, keep, memory_counts);
  std::deque<std::size_t> queue;
  for (std::size_t n = 0; n < p.nodes.size(); ++n) queue.push_back(n);
  while (!queue.empty()) {
    const std::size_t n = queue.front();
    queue.pop_front();
    queued[n] = 0;
    if (++visits[n] > max_dominance_visits) continue;
    const std::vector<std::size_t>& dropped = known.droppable(n);
    if (dropped.empty()) continue;
    for (const std::size_t c : dropped) keep[n][c] = 0;
    known.changed(n);
    for (const std::size_t e : known.incident(n)) {
      const std::size_t other = p.edges[e].from == n ? p.edges[e].to : p.edges[e].from;
      if (!queued[other]) queue.push_back(other);
      queued[other] = 1;
    }
  }
  return keep_only(std::move(p), keep);
}

}  // namespace cfp::detail
