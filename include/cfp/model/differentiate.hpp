// Reverse-mode differentiation: forward graph -> training graph. Gradient rules keep the forward rule's factors, so a
// mesh axis that splits a factor forward splits the same factor backward.
#pragma once

#include <cfp/model/backward_operations.hpp>
#include <cfp/model/gradient_graph.hpp>
#include <cfp/model/weight_updates.hpp>

#include <utility>
#include <vector>

namespace cfp::inline v0_1 {

namespace detail {

constexpr graph differentiated(const graph& forward, const training& options, bool updates) {
  gradient_graph sums{{}, updates};
  graph& g = sums.g;
  g.operations.reserve(4 * forward.operations.size());  // about what there will be
  g.values.reserve(4 * forward.values.size());
  g = forward;
  backward_operations backward{sums};
  weight_updates weights{{sums, options}};
  const int forward_count = g.size(), value_count = g.value_count();
  sums.needed.resize(g.values.size());
  sums.contributions.resize(g.values.size());
  std::vector<index> first_use(g.values.size());
  for (int v = 0; v < value_count; ++v) sums.needed[static_cast<std::size_t>(v)].set = sums.trained(v);
  for (int i = 0; i < forward_count; ++i)
    for (int v : g.at(i).operands) {
      if (index& first = first_use[static_cast<std::size_t>(v)]; first.id < 0) first.id = i;
      if (sums.wants(v) && !g.at(i).op->statistic)
        for (int r : g.at(i).results) sums.needed[static_cast<std::size_t>(r)].set = true;
    }
  const int seed = sums.gradient_value(g.loss, ".seed");
  g[seed].role = value_role::constant;
  g[seed].fill.constant = 1.0 / options.micro_batches;
  sums.contribute(g.loss, seed);
  for (int i = forward_count - 1; i >= 0; --i) {
    backward.add(i);
    const list<int, max_operands> operands = g.at(i).operands;
    for (int k = 0; k < operands.size(); ++k)
      if (const int v = operands[k]; operands.find(v) == k && v < value_count && sums.trained(v) &&
                                     first_use[static_cast<std::size_t>(v)].id == i) {
        if (updates) weights.finish(v);
        else sums.total(v);
      }
  }
  weights.update_all();
  g.passes = options.micro_batches;
  g.gradients = options.gradients;
  return std::move(g);
}

}  // namespace detail

/// Adds backward operations and optimizer updates. `forward.loss` must be a scalar. Each weight is updated as soon as
/// its gradient is complete and nothing reads the old weight any more, or in the end where all gradients are waited
/// for.
constexpr graph differentiate(const graph& forward, const training& options = {}) {
  return detail::differentiated(forward, options, true);
}

/// Adds backward operations alone, of a graph that may end in any tensor (`forward.loss`), down to the weights and the
/// activations that come from outside.
constexpr graph gradients(const graph& forward) { return detail::differentiated(forward, {}, false); }

}  // namespace cfp
