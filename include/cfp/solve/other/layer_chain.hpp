// A chain of layers, each of which has strategies of its own, with conversions between strategies: what searches that
// choose per layer read. The same as a problem of stages: an option of a run is a strategy for each of its layers.
#pragma once

#include <cfp/solve/stage_problem.hpp>

#include <algorithm>
#include <limits>
#include <map>
#include <utility>
#include <vector>

namespace cfp::inline v0_1 {

struct layer_chain {
  std::vector<std::vector<stage_option>> strategies;  ///< of each layer
  /// Before each layer, [strategy of the layer before][own], within a stage; empty: converting takes nothing.
  std::vector<std::vector<std::vector<border_cost>>> convert;
  std::vector<border_cost> border;  ///< before each layer, where a stage begins with it; empty: nothing is sent
  int stages = 1, micro_batches = 1;
  double memory = std::numeric_limits<double>::infinity();  ///< bytes that a device has

  int layers() const { return static_cast<int>(strategies.size()); }
  const stage_option& option(int layer, int of) const {
    return strategies[static_cast<std::size_t>(layer)][static_cast<std::size_t>(of)];
  }
  /// Milliseconds of a micro-batch from the layer before, which has strategy `from`.
  border_cost conversion(int layer, int from, int to) const {
    const auto l = static_cast<std::size_t>(layer);
    if (convert.empty() || convert[l].empty()) return {};
    return convert[l][static_cast<std::size_t>(from)][static_cast<std::size_t>(to)];
  }
  border_cost sent(int layer) const { return border.empty() ? border_cost{} : border[static_cast<std::size_t>(layer)]; }
};

/// A strategy for each layer, and where stages end.
struct layer_plan {
  std::vector<int> ends;        ///< of each stage, the first layer that is not its; none: nothing fits
  std::vector<int> strategies;  ///< of each layer
  double ms = std::numeric_limits<double>::infinity();  ///< by the formula of who made it
  bool proven = false;  ///< that none is better by that formula, of the cuts that it looks at, or that none fits

  bool feasible() const { return !ends.empty(); }
};

/// What layers from `first` on take together, as a stage.
inline stage_option stage_of(const layer_chain& c, int first, const std::vector<int>& strategies) {
  stage_option out;
  for (std::size_t i = 0; i < strategies.size(); ++i) {
    const int layer = first + static_cast<int>(i);
    const stage_option& o = c.option(layer, strategies[i]);
    const border_cost from = i > 0 ? c.conversion(layer, strategies[i - 1], strategies[i]) : border_cost{};
    out.forward += o.forward + from.forward, out.backward += o.backward + from.backward;
    out.update += o.update, out.always += o.always, out.kept += o.kept;
  }
  return out;
}

/// A problem of stages whose options are the strategies of layers; those of a run that others beat in everything are
/// left out. Grows with the product of the strategies: for few layers. Must outlive the searches of `problem`.
class chain_stages {
 public:
  explicit chain_stages(layer_chain of) : chain(std::move(of)) {
    problem.layers = chain.layers(), problem.stages = chain.stages, problem.micro_batches = chain.micro_batches;
    problem.memory = chain.memory;
    problem.options = [this](int, int first, int end) -> const std::vector<stage_option>& {
      const auto [at, is_new] = options_.try_emplace({first, end});
      if (is_new) combine(first, end, {}, at->second);
      return at->second;
    };
    if (!chain.border.empty()) problem.border = [this](int, int at) { return chain.sent(at); };
  }
  chain_stages(const chain_stages&) = delete;
  chain_stages& operator=(const chain_stages&) = delete;

  /// The options of a plan's stages.
  std::vector<stage_option> options_of(const layer_plan& plan) const {
    std::vector<stage_option> out;
    int first = 0;
    for (const int end : plan.ends) {
      out.push_back(stage_of(chain, first, {plan.strategies.begin() + first, plan.strategies.begin() + end}));
      first = end;
    }
    return out;
  }

  const layer_chain chain;
  stage_problem problem;

 private:
  void combine(int first, int end, const std::vector<int>& so_far, std::vector<stage_option>& to) const {
    const int layer = first + static_cast<int>(so_far.size());
    if (layer == end) return add(stage_of(chain, first, so_far), to);
    for (std::size_t s = 0; s < chain.strategies[static_cast<std::size_t>(layer)].size(); ++s) {
      std::vector<int> next = so_far;
      next.push_back(static_cast<int>(s));
      combine(first, end, next, to);
    }
  }
  static void add(const stage_option& o, std::vector<stage_option>& to) {
    const auto no_worse = [](const stage_option& a, const stage_option& b) {
      return a.forward <= b.forward && a.backward <= b.backward && a.update <= b.update && a.always <= b.always &&
             a.kept <= b.kept;
    };
    for (const stage_option& other : to)
      if (no_worse(other, o)) return;
    std::erase_if(to, [&](const stage_option& other) { return no_worse(o, other); });
    to.push_back(o);
  }

  std::map<std::pair<int, int>, std::vector<stage_option>> options_;
};

namespace detail {

inline void check_sizes(const layer_chain& c) {
  stage_problem sizes;
  sizes.layers = c.layers(), sizes.stages = c.stages, sizes.micro_batches = c.micro_batches;
  check_sizes(sizes);
}

}  // namespace detail

}  // namespace cfp
