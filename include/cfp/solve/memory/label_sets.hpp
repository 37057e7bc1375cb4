#pragma once

// The partial plans of every entry of a message, and how each was put together.

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <cfp/solve/exact/elimination_steps.hpp>
#include <cfp/solve/memory/label.hpp>
#include <cfp/solve/problem.hpp>

namespace cfp::inline v0_1::detail {

/// The labels of one entry, in order of excess.
struct label_set {
  std::uint32_t first;
  std::uint32_t last;
};
class label_sets {
 public:
  explicit label_sets(const elimination_layout& layout) : layout_(layout) {}

  void clear() {
    pool_.clear();
    traces_.clear();
    sets_.assign(layout_.size - layout_.message_begin, {0, 0});
  }
  /// Labels and traces held.
  [[nodiscard]] std::size_t size() const { return pool_.size() + traces_.size(); }
  [[nodiscard]] label_set at(std::size_t place) const { return sets_[place - layout_.message_begin]; }
  [[nodiscard]] const label& operator[](std::uint32_t index) const { return pool_[index]; }

  void append_traces(std::vector<label>& labels) {
    for (label& l : labels) {
      if (l.input == no_label) continue;
      traces_.push_back({l.trace, l.input});
      l.trace = static_cast<std::uint32_t>(traces_.size() - 1);
      l.input = no_label;
    }
  }

  /// Those of one entry, which are in order of excess.
  void put(std::size_t place, const std::vector<label>& labels) {
    const auto first = static_cast<std::uint32_t>(pool_.size());
    pool_.insert(pool_.end(), labels.begin(), labels.end());
    sets_[place - layout_.message_begin] = {first, static_cast<std::uint32_t>(pool_.size())};
  }

  /// Follows the traces down from the roots; the inputs of a label lie in the order of its step's children.
  [[nodiscard]] plan_indices plan_of(const label& whole, std::size_t nodes) const {
    plan_indices plan(nodes, 0);
    std::vector<std::pair<std::size_t, std::uint32_t>> pending;  // step, label
    std::uint32_t t = whole.trace;
    const std::vector<std::size_t>& roots = layout_.roots;
    for (std::size_t r = roots.size(); r > 0; --r, t = traces_[t].before) {
      pending.emplace_back(roots[r - 1], traces_[t].label);
    }
    while (!pending.empty()) {
      const auto [s, index] = pending.back();
      pending.pop_back();
      const elimination_step& step = layout_.steps[s];
      plan[step.node] = pool_[index].choice;
      t = pool_[index].trace;
      for (std::size_t i = step.inputs.size(); i > 0; --i) {
        if (step.inputs[i - 1].child == no_step) continue;
        pending.emplace_back(step.inputs[i - 1].child, traces_[t].label);
        t = traces_[t].before;
      }
    }
    return plan;
  }

 private:
  struct trace {
    std::uint32_t before;
    std::uint32_t label;
  };

  const elimination_layout& layout_;
  std::vector<label> pool_;  // all labels, set after set
  std::vector<trace> traces_;
  std::vector<label_set> sets_;  // per entry of a message
};

}  // namespace cfp::detail
