// What a step does for weights once their gradients are complete: adds them up, measures them, updates the weights.
#pragma once

#include <cfp/model/gradient_graph.hpp>
#include <cfp/model/training.hpp>
#include <cfp/op/optimizer.hpp>

namespace cfp::inline v0_1::detail {

struct weight_updates {
  gradient_graph& sums;
  const training& options;
  graph& g = sums.g;
  std::vector<index> waiting{};  // weights that are updated at the end
  int squares = -1;              // of all gradients

  // An elementwise operation of the step that belongs to a weight.
  constexpr operation of_weight(int weight, const op_info& op, std::string_view rule, phase when) const {
    operation o;
    o.op = &op;
    o.r = parse(rule, g[weight].rank());
    o.sizes = gradient_graph::sizes_of(g[weight]);
    o.when = when;
    o.hub = weight;
    return o;
  }
  constexpr int number(int of, const char* suffix) {
    const int v = sums.gradient_value(of, suffix);
    g[v].shape = {};
    g[v].dims = {};
    g[v].group = {};
    g[v].type = element::wide;
    return v;
  }

  // The gradient is complete. It is added up, measured, and the weight updated: at once, if nothing has to be waited
  // for.
  constexpr void finish(int weight) {
    int gradient = sums.total(weight);
    if (gradient < 0) return;
    if (options.micro_batches > 1) {
      operation o = of_weight(weight, info<accumulate_t>, accumulate_t::rule_source, phase::backward);
      const int sum = sums.gradient_value(weight, ".grad.accumulated");
      g[sum].role = value_role::accumulator;
      g[sum].type = element::wide;
      o.operands = {{sum, gradient}, 2};
      gradient = sums.gradient_value(weight, ".grad.all");
      g[gradient].role = value_role::accumulator;
      g[gradient].type = element::wide;
      o.results.push(gradient);
      g.add(o);
      sums.contributions[static_cast<std::size_t>(weight)].clear();
      sums.contributions[static_cast<std::size_t>(weight)].push_back(gradient);
    }
    if (options.micro_batches > 1 || options.clip > 0) waiting.push_back({weight});
    else update(weight, gradient, -1);
  }

  constexpr void measure(int weight) {
    operation o = of_weight(weight, info<square_norm_t>, square_norm_t::rule_source, phase::update);
    o.operands.push(sums.total(weight));
    const int square = number(weight, ".grad.square_norm");
    o.results.push(square);
    g.add(o);
    if (squares < 0) {
      squares = square;
      return;
    }
    operation sum;
    sum.op = &info<add_t>;
    sum.r = parse(add_t::rule_source, 0);
    sum.when = phase::update;
    sum.operands = {{squares, square}, 2};
    squares = number(weight, ".grad.square_norm.sum");
    sum.results.push(squares);
    g.add(sum);
  }

  constexpr void update_all() {
    int factor = -1;
    if (options.clip > 0 && !waiting.empty()) {
      for (const index& w : waiting) measure(w.id);
      operation o;
      o.op = &info<clip_factor_t>;
      o.r = parse(clip_factor_t::rule_source, 0);
      o.scalars.push(options.clip);
      o.when = phase::update;
      o.operands.push(squares);
      factor = number(g.loss, ".clip_factor");
      o.results.push(factor);
      g.add(o);
    }
    for (const index& w : waiting) update(w.id, sums.total(w.id), factor);
  }

  constexpr void update(int weight, int gradient, int factor) {
    operation o = of_weight(weight, info<adamw_t>, factor < 0 ? adamw_t::rule_source : adamw_t::clipped, phase::update);
    o.operands = {{weight, gradient}, 2};
    for (const char* moment : {".exp_avg", ".exp_avg_sq"}) {
      const int m = sums.gradient_value(weight, moment);
      g[m].role = value_role::state;
      g[m].type = element::wide;
      o.operands.push(m);
    }
    if (factor >= 0) o.operands.push(factor);
    for (const char* suffix : {".next", ".exp_avg.next", ".exp_avg_sq.next"}) {
      const int r = sums.gradient_value(weight, suffix);
      g[r].role = suffix[1] == 'n' ? value_role::weight : value_role::state;
      g[r].type = element::wide;
      o.results.push(r);
    }
    const int written_rank = g[weight].group.empty() ? 0 : g[weight].group.back() + 1;
    o.scalars = {{options.rate, options.beta1, options.beta2, options.epsilon, written_rank > 1 ? options.decay : 0.0,
                  static_cast<double>(options.warmup), static_cast<double>(options.steps), options.last_rate},
                 8};
    g.add(o);
  }
};

}  // namespace cfp::detail
