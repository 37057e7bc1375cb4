// Segments run whole: what a plan's segments take, beside the sum of their parts.
#pragma once

#include <cfp/block/segments.hpp>
#include <cfp/plan/realise.hpp>
#include <cfp/solve/cost_graph.hpp>

namespace cfp::inline v0_1 {

/// Shares a plan's decisions and operations out among its segments.
class segment_times {
 public:
  segment_times(const block_structure& s, const segmentation& seg, const decision_graph& d)
      : d_(d), segments_(seg), of_node_(d.nodes.size(), -1), operations_(seg.segments.size()),
        nodes_(seg.segments.size()) {
    std::vector<int> of_block(s.blocks.size());
    for (std::size_t i = 0; i < seg.segments.size(); ++i)
      for (int b = 0; b < seg.segments[i].count; ++b)
        of_block[static_cast<std::size_t>(seg.segments[i].first + b)] = static_cast<int>(i);
    for (std::size_t n = 0; n < d.nodes.size(); ++n)
      if (d.nodes[n].kind == decision::strategy_of_part)
        of_node_[n] = of_block[static_cast<std::size_t>(s.parts[static_cast<std::size_t>(d.nodes[n].index)].block)];
    // Shared tensors belong to the last segment that reads them, their gradients with them.
    for (const decision_edge& e : d.edges) {
      const auto to = static_cast<std::size_t>(e.to), from = static_cast<std::size_t>(e.from);
      if (d.nodes[from].kind == decision::forms_of_tensor) of_node_[from] = std::max(of_node_[from], of_node_[to]);
    }
    for (std::size_t n = 0; n < d.nodes.size(); ++n) {
      if (of_node_[n] >= 0) continue;
      for (std::size_t m = 0; m < d.nodes.size(); ++m)
        if (d.nodes[m].kind == decision::forms_of_tensor && d.nodes[m].index == d.nodes[n].index)
          of_node_[n] = of_node_[m];
      if (of_node_[n] < 0) of_node_[n] = 0;
    }
    for (std::size_t n = 0; n < d.nodes.size(); ++n) {
      const auto i = static_cast<std::size_t>(of_node_[n]);
      if (d.nodes[n].choices() > 1) nodes_[i].push_back(static_cast<int>(n));
      for (int o : d.nodes[n].operations) operations_[i].push_back(o);
    }
    for (auto& ops : operations_) std::sort(ops.begin(), ops.end());
  }

  std::size_t size() const { return operations_.size(); }

  /// The operations of a segment, ascending.
  const std::vector<int>& operations(std::size_t i) const { return operations_[i]; }

  /// The decisions of a segment that have a choice.
  const std::vector<int>& decisions(std::size_t i) const { return nodes_[i]; }

  /// The segment of a decision.
  int of(int node) const { return at(node); }

  /// Milliseconds of a segment of this plan, run whole by a `profiler`.
  template <class Profiler>
  double whole(const plan& p, std::size_t i, Profiler& measure_with, bool again = false) const {
    return measure_with
        .whole(operations_[i], p.shards, "segment of kind " + std::to_string(segments_.segments[i].kind), again)
        .median;
  }

  /// What the cost graph says of the same: its nodes, and the edges inside.
  double parts(const plan& p, std::size_t i, const cost_graph& costs) const {
    double ms = 0;
    for (std::size_t n = 0; n < d_.nodes.size(); ++n)
      if (of_node_[n] == static_cast<int>(i)) ms += costs.nodes[n].time[chosen(p, static_cast<int>(n))];
    for (const cost_edge& e : costs.edges)
      if (at(e.from) == static_cast<int>(i) && at(e.to) == static_cast<int>(i)) ms += time_of(p, e, costs);
    return ms;
  }

  bool is_between(const decision_edge& e) const { return at(e.from) != at(e.to); }

  /// The edges between segments.
  double between(const plan& p, const cost_graph& costs) const {
    double ms = 0;
    for (const cost_edge& e : costs.edges)
      if (at(e.from) != at(e.to)) ms += time_of(p, e, costs);
    return ms;
  }

 private:
  int at(int node) const { return of_node_[static_cast<std::size_t>(node)]; }
  static std::size_t chosen(const plan& p, int node) {
    return static_cast<std::size_t>(p.choices[static_cast<std::size_t>(node)]);
  }
  static double time_of(const plan& p, const cost_edge& e, const cost_graph& costs) {
    return e.time[chosen(p, e.from) * costs.nodes[static_cast<std::size_t>(e.to)].time.size() + chosen(p, e.to)];
  }

  const decision_graph& d_;
  const segmentation& segments_;
  std::vector<int> of_node_;
  std::vector<std::vector<int>> operations_, nodes_;
};

}  // namespace cfp
