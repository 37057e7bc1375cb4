// What a step does for weights once their gradients are complete: adds them up, measures them, updates the weights.
#pragma once

#include <cfp/model/adafactor_update.hpp>
#include <cfp/op/optimizer.hpp>

namespace cfp::inline v0_1::detail {

struct weight_updates : weight_operations {
  std::vector<index> waiting{};  // weights that are updated at the end
  int squares = -1;              // of all gradients

  // The gradient is complete. It is added up, measured, and the weight updated: at once, if nothing has to be waited
  // for.
  constexpr void finish(int weight) {
    int gradient = sums.total(weight);
    if (gradient < 0) return;
    if (options.micro_batches > 1) {
      operation o = of_weight(weight, info<accumulate_t>, 2, 1, phase::backward);
      o.operands = {{made(weight, ".grad.accumulated", all_of(weight), value_role::accumulator), gradient}, 2};
      gradient = result(o, made(weight, ".grad.all", all_of(weight), value_role::accumulator));
      sums.contributions[static_cast<std::size_t>(weight)].clear();
      sums.contributions[static_cast<std::size_t>(weight)].push_back(gradient);
    }
    if (options.micro_batches > 1 || options.clip > 0) waiting.push_back({weight});
    else update(weight, gradient, -1);
  }

  constexpr void measure(int weight) {
    operation o = of_weight(weight, info<square_norm_t>, {all_of(weight)}, {{}}, phase::update);
    o.operands.push(sums.total(weight));
    const int square = result(o, number(weight, ".grad.square_norm"));
    if (squares < 0) {
      squares = square;
      return;
    }
    operation sum;
    sum.op = &info<add_t>;
    sum.r = parse(add_t::rule_source, 0);
    sum.when = phase::update;
    sum.operands = {{squares, square}, 2};
    squares = result(sum, number(weight, ".grad.square_norm.sum"));
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
      factor = result(o, number(g.loss, ".clip_factor"));
    }
    for (const index& w : waiting) update(w.id, sums.total(w.id), factor);
  }

  constexpr void update(int weight, int gradient, int factor) {
    if (options.optimizer == optimizer_form::adafactor) adafactor_update{*this}.update(weight, gradient, factor);
    else update_by_adamw(weight, gradient, factor);
  }

  constexpr void update_by_adamw(int weight, int gradient, int factor) {
    operation o = of_weight(weight, info<adamw_t>, 4, 3, phase::update);
    o.operands = {{weight, gradient}, 2};
    const auto moment = [&](const char* suffix) {
      const int m = made(weight, suffix, all_of(weight), value_role::state);
      g[m].type = moments_of(options.optimizer);
      return m;
    };
    for (const char* suffix : {".exp_avg", ".exp_avg_sq"}) o.operands.push(moment(suffix));
    if (factor >= 0) {
      o.r.operands.push({});
      o.operands.push(factor);
    }
    o.results.push(made(weight, ".next", all_of(weight), value_role::weight));
    for (const char* suffix : {".exp_avg.next", ".exp_avg_sq.next"}) o.results.push(moment(suffix));
    o.scalars = {{options.rate, options.beta1, options.beta2, options.epsilon, decay_of(weight),
                  static_cast<double>(options.warmup), static_cast<double>(options.steps), options.last_rate},
                 8};
    g.add(o);
  }
};

}  // namespace cfp::detail
