#pragma once

// Corrections: what a joint choice of several nodes costs beyond its parts and pairs, as a cost graph can say it.
//
// Every joint choice that has been measured as a whole becomes a box of its own; all others are cut into boxes that
// together hold each of them once. One further node chooses the box, and edges forbid what lies outside it. The
// graph stays one of nodes and pairs, so `solve` stays exact and needs to know nothing of corrections.

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

#include <cfp/solve/cost_graph.hpp>

namespace cfp::inline v0_1 {

class correction {
 public:
  /// The nodes whose joint choices are corrected, and how many choices each has.
  correction(std::vector<int> nodes, const cost_graph& graph) : nodes_(std::move(nodes)) {
    box all;
    for (const int n : nodes_) all.allowed.emplace_back(graph.nodes[static_cast<std::size_t>(n)].time.size(), true);
    boxes_.push_back(std::move(all));
  }

  /// Whether this plan's choices at the nodes have been corrected.
  [[nodiscard]] bool knows(const std::vector<int>& plan) const { return boxes_[box_of(plan)].measured; }

  /// Adds `time` to every plan that chooses at the nodes as `plan` does. Once for each joint choice.
  void add(const std::vector<int>& plan, double time) {
    const std::size_t at = box_of(plan);
    if (boxes_[at].measured) return;
    box rest = boxes_[at];  // of which the first k nodes already choose as the plan does
    boxes_.erase(boxes_.begin() + static_cast<std::ptrdiff_t>(at));
    for (std::size_t k = 0; k < nodes_.size(); ++k) {
      const std::size_t chosen = choice(plan, k);
      box other = rest;
      other.allowed[k][chosen] = false;
      bool any = false;
      for (const bool a : other.allowed[k]) any = any || a;
      if (any) boxes_.push_back(std::move(other));
      rest.allowed[k].assign(rest.allowed[k].size(), false);
      rest.allowed[k][chosen] = true;
    }
    rest.measured = true;
    rest.time = time;
    boxes_.push_back(std::move(rest));
  }

  /// What the joint choices that were added have in common: the median of their times; 0 if there are none.
  [[nodiscard]] double common() const {
    std::vector<double> times;
    for (const box& b : boxes_)
      if (b.measured) times.push_back(b.time);
    if (times.empty()) return 0;
    std::sort(times.begin(), times.end());
    return (times[times.size() / 2] + times[(times.size() - 1) / 2]) / 2;
  }

  /// Adds the node that chooses a box, and its edges. All other joint choices take `others`.
  void write(cost_graph& graph, double others = 0) const {
    if (boxes_.size() == 1 && !boxes_[0].measured) return;
    cost_node chooser;
    chooser.name = "correction";
    for (const box& b : boxes_) chooser.time.push_back(b.measured ? b.time : others);
    chooser.memory.assign(boxes_.size(), 0);
    const int self = static_cast<int>(graph.nodes.size());
    graph.nodes.push_back(std::move(chooser));
    for (std::size_t k = 0; k < nodes_.size(); ++k) {
      cost_edge e{self, nodes_[k], {}};
      for (const box& b : boxes_)
        for (const bool allowed : b.allowed[k]) e.time.push_back(allowed ? 0 : std::numeric_limits<double>::infinity());
      graph.edges.push_back(std::move(e));
    }
  }

 private:
  struct box {
    std::vector<std::vector<bool>> allowed;  // [node][choice]
    bool measured = false;                   // a single joint choice
    double time = 0;
  };

  [[nodiscard]] std::size_t choice(const std::vector<int>& plan, std::size_t k) const {
    return static_cast<std::size_t>(plan[static_cast<std::size_t>(nodes_[k])]);
  }
  [[nodiscard]] std::size_t box_of(const std::vector<int>& plan) const {
    for (std::size_t b = 0; b < boxes_.size(); ++b) {
      bool inside = true;
      for (std::size_t k = 0; k < nodes_.size() && inside; ++k) inside = boxes_[b].allowed[k][choice(plan, k)];
      if (inside) return b;
    }
    return 0;  // not reached: the boxes hold every joint choice once
  }

  std::vector<int> nodes_;
  std::vector<box> boxes_;
};

}  // namespace cfp
