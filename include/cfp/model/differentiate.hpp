// Reverse-mode differentiation: forward graph -> training graph. Gradient rules keep the forward rule's factors, so a
// mesh axis that splits a factor forward splits the same factor backward.
#pragma once

#include <cfp/model/graph.hpp>
#include <cfp/op/catalogue.hpp>
#include <cfp/op/optimizer.hpp>

namespace cfp::inline v0_1 {

/// How a model is trained: by AdamW, on one batch per step.
struct training {
  double rate = 3e-4, beta1 = 0.9, beta2 = 0.95, epsilon = 1e-8;
  double decay = 0.1;      ///< of tensors with two dimensions or more; others do not decay
  long warmup = 0;         ///< steps over which the rate rises
  long steps = 0;          ///< after which the rate has fallen to `last_rate`; 0: it stays
  double last_rate = 0;
  double clip = 0;         ///< most the norm of all gradients together may be; 0: any
  int micro_batches = 1;   ///< a step's batch comes in so many pieces; their gradients are added up. The model is of one piece
};

namespace detail {

struct differentiator {
  graph g;
  training options;
  bool updates = true;  // or gradients alone
  std::vector<mark> needed{};                    // values a gradient is wanted of
  std::vector<std::vector<int>> contributions{};  // of each value's gradient
  std::vector<index> waiting{};                  // weights that are updated at the end
  int squares = -1;                              // of all gradients

  constexpr int gradient_value(int of, const char* suffix) {
    value v = g[of];
    v.label += suffix;
    v.role = value_role::gradient;
    v.of = of;
    v.producer = -1;
    v.fill = {};
    needed.push_back({});
    contributions.push_back({});
    return g.add(v);
  }

  // Sum of all contributions; the additions belong to the hub, not to an operator.
  constexpr int total(int v) {
    auto& parts = contributions[static_cast<std::size_t>(v)];
    if (parts.empty()) return -1;
    int sum = parts[0];
    const std::size_t count = parts.size();
    for (std::size_t i = 1; i < count; ++i) {
      const int part = contributions[static_cast<std::size_t>(v)][i];
      operation o;
      o.op = &info<add_t>;
      o.r = parse(add_t::rule_source, g[v].rank());
      o.sizes = sizes_of(g[v]);
      o.operands.push(sum);
      o.operands.push(part);
      sum = gradient_value(v, ".grad.sum");
      g[sum].type = g[o.operands[0]].type == element::wide || g[o.operands[1]].type == element::wide ? element::wide : element::real;
      o.results.push(sum);
      o.when = phase::backward;
      o.hub = v;
      g.add(o);
    }
    auto& all = contributions[static_cast<std::size_t>(v)];
    all.clear();
    all.push_back(sum);
    return sum;
  }

  static constexpr factor_sizes sizes_of(const value& v) {
    factor_sizes s;
    for (long e : v.shape) s.push(e);
    return s;
  }

  // A gradient is wanted of weights, and of activations that come from outside.
  constexpr bool trained(int v) const {
    return g[v].role == value_role::weight || (!updates && g[v].role == value_role::activation && g[v].producer < 0);
  }
  constexpr bool wants(int v) const { return needed[static_cast<std::size_t>(v)].set; }
  constexpr void contribute(int of, int part) { contributions[static_cast<std::size_t>(of)].push_back(part); }

  // A gradient operator whose rule is made of patterns of the forward rule.
  constexpr void emit(int forward, const op_info& op, const list<pattern, max_operands>& patterns,
                      const list<int, max_operands>& operands, int target, bool keep_marks) {
    operation o;
    const operation from = g.at(forward);
    o.op = &op;
    o.r.factors = from.r.factors;
    o.sizes = from.sizes;
    o.r.operands = patterns;
    o.r.results.push(from.r.operands[target]);
    if (keep_marks) o.r.coordinates = from.r.coordinates;
    drop_unused(o);
    o.operands = operands;
    if (op.scalars == from.op->scalars) o.scalars = from.scalars;
    o.when = phase::backward;
    o.origin = forward;
    const int result = gradient_value(from.operands[target], ".grad");
    g[result].type = stored_as(o, 0);
    o.results.push(result);
    g.add(o);
    contribute(from.operands[target], result);
  }

  // Factors that stand nowhere in the new rule would look like reductions.
  static constexpr void drop_unused(operation& o) {
    signed char renamed[max_factors] = {};
    rule out;
    factor_sizes sizes;
    for (int f = 0; f < o.r.factors.size(); ++f) {
      bool used = o.r.coordinates.contains(static_cast<signed char>(f));
      for (const pattern& p : o.r.operands) used = used || p.dim_of(f) >= 0;
      for (const pattern& p : o.r.results) used = used || p.dim_of(f) >= 0;
      renamed[f] = static_cast<signed char>(out.factors.size());
      if (!used) continue;
      out.factors.push(o.r.factors[f]);
      sizes.push(o.sizes[f]);
    }
    const auto rename = [&](const pattern& p) {
      pattern q;
      q.group = p.group;
      for (signed char f : p.factors) q.factors.push(renamed[f]);
      return q;
    };
    for (const pattern& p : o.r.operands) out.operands.push(rename(p));
    for (const pattern& p : o.r.results) out.results.push(rename(p));
    for (signed char f : o.r.coordinates) out.coordinates.push(renamed[f]);
    out.combine = o.r.combine;
    o.r = out;
    o.sizes = sizes;
  }

  // Gradient written out as steps: labels of a step's rule name factors of the (refined) forward rule.
  constexpr void written(int forward, const list<int, max_results>& dz) {
    const operation from = g.at(forward);
    list<int, 8> steps;
    for (int s = 0; s < from.op->gradient_steps; ++s) {
      const gradient_step& step = from.op->gradient[s];
      int ellipsis = 0;
      for (const factor& f : from.r.factors)
        if (const std::string_view l = f.label.view(); l.starts_with("..") && l[2] - '0' >= ellipsis) ellipsis = l[2] - '0' + 1;  // perhaps cut since
      const rule text = parse(step.rule, ellipsis);
      operation o;
      o.op = step.op;
      o.r.factors = from.r.factors;
      for (factor& f : o.r.factors) f.one_hot = f.whole = false;
      o.sizes = from.sizes;
      const auto translate = [&](const pattern& p) {
        pattern out;
        for (int i = 0; i < p.factors.size(); ++i) {
          const std::string_view label = text.factors[p.factors[i]].label.view();
          for (int f = 0; f < from.r.factors.size(); ++f) {
            const std::string_view have = from.r.factors[f].label.view();
            if (have != label && !(have.starts_with(label) && have[label.size()] == '.')) continue;
            out.factors.push(static_cast<signed char>(f));
            out.group.push(p.group[i]);
            if (text.factors[p.factors[i]].whole) o.r.factors[f].whole = true;
          }
        }
        return out;
      };
      for (const pattern& p : text.operands) o.r.operands.push(translate(p));
      for (const pattern& p : text.results) o.r.results.push(translate(p));
      for (signed char c : text.coordinates) o.r.coordinates.push(static_cast<signed char>(from.r.find(text.factors[c].label)));
      for (const gradient_source& source : step.operands) {
        switch (source.from) {
          case gradient_source::operand: o.operands.push(from.operands[source.index]); break;
          case gradient_source::result: o.operands.push(from.results[source.index]); break;
          case gradient_source::gradient: o.operands.push(dz[source.index] >= 0 ? dz[source.index] : zero(from.results[source.index])); break;
          case gradient_source::step: o.operands.push(steps[source.index]); break;
        }
      }
      drop_unused(o);
      if (step.op->scalars == from.op->scalars) o.scalars = from.scalars;
      o.when = phase::backward;
      o.origin = forward;
      const int target = step.targets[0];
      int out;
      if (target >= 0) {
        out = gradient_value(from.operands[target], ".grad");
        contribute(from.operands[target], out);
      } else {
        out = gradient_value(from.results[0], ".grad.row");
        g[out].shape = {};
        g[out].dims = {};
        g[out].group = {};
        for (int i = 0; i < o.r.results[0].factors.size(); ++i) {
          const int f = o.r.results[0].factors[i];
          g[out].shape.push(o.sizes[f]);
          g[out].group.push(static_cast<signed char>(i));
          g[out].dims.push(factor_name(g, o, f));
        }
      }
      g[out].type = stored_as(o, 0);
      o.results.push(out);
      steps.push(out);
      g.add(o);
    }
  }

  // The gradient of a result that nothing reads.
  constexpr int zero(int of) {
    const int v = gradient_value(of, ".grad.zero");
    g[v].role = value_role::constant;
    return v;
  }

  constexpr void backward(int forward) {
    const operation o = g.at(forward);
    list<int, max_results> dz;
    bool any = false;
    for (int r : o.results) {
      dz.push(total(r));
      any = any || dz.back() >= 0;
    }
    if (!any || o.op->statistic) return;
    if (o.op->gradient_steps == 0 && o.r.combine != reduction::sum)
      throw "cfp: a maximum or minimum has no gradient of its own: mark the operator `statistic`, and let the operator that takes it own the gradient";
    if (o.op->gradient_steps > 0) return written(forward, dz);
    if (o.op->body == op_body::routine) throw "cfp: a routine has no gradient of its own: give the operator a `gradient`, or mark it `statistic`";
    const pattern z = o.r.results[0];
    for (int i = 0; i < o.operands.size(); ++i) {
      if (i == o.op->index_operand || !wants(o.operands[i])) continue;
      if (o.op->body == op_body::product) {
        emit(forward, *o.op, {{z, o.r.operands[1 - i]}, 2}, {{dz[0], o.operands[1 - i]}, 2}, i, false);
      } else if (o.op->unit && o.op->index_operand >= 0) {
        const int k = o.op->index_operand;
        emit(forward, info<scatter_add_t>, {{z, o.r.operands[k]}, 2}, {{dz[0], o.operands[k]}, 2}, i, false);
      } else if (o.op->unit) {
        emit(forward, info<copy_t>, {{z}, 1}, {{dz[0]}, 1}, i, false);
      } else if (o.op->slopes[static_cast<std::size_t>(i)]) {
        list<pattern, max_operands> patterns{{z}, 1};
        list<int, max_operands> operands{{dz[0]}, 1};
        for (const pattern& p : o.r.operands) patterns.push(p);
        for (int v : o.operands) operands.push(v);
        emit(forward, *o.op->slopes[static_cast<std::size_t>(i)], patterns, operands, i, true);
      }
    }
  }

  // An elementwise operation of the step that belongs to a weight.
  constexpr operation of_weight(int weight, const op_info& op, std::string_view rule, phase when) const {
    operation o;
    o.op = &op;
    o.r = parse(rule, g[weight].rank());
    o.sizes = sizes_of(g[weight]);
    o.when = when;
    o.hub = weight;
    return o;
  }
  constexpr int number(int of, const char* suffix) {
    const int v = gradient_value(of, suffix);
    g[v].shape = {};
    g[v].dims = {};
    g[v].group = {};
    g[v].type = element::wide;
    return v;
  }

  // The gradient is complete. It is added up, measured, and the weight updated: at once, if nothing has to be waited for.
  constexpr void finish(int weight) {
    int gradient = total(weight);
    if (gradient < 0) return;
    if (options.micro_batches > 1) {
      operation o = of_weight(weight, info<accumulate_t>, accumulate_t::rule_source, phase::backward);
      const int sum = gradient_value(weight, ".grad.accumulated");
      g[sum].role = value_role::accumulator;
      g[sum].type = element::wide;
      o.operands = {{sum, gradient}, 2};
      gradient = gradient_value(weight, ".grad.all");
      g[gradient].role = value_role::accumulator;
      g[gradient].type = element::wide;
      o.results.push(gradient);
      g.add(o);
      contributions[static_cast<std::size_t>(weight)].clear();
      contributions[static_cast<std::size_t>(weight)].push_back(gradient);
    }
    if (options.micro_batches > 1 || options.clip > 0) waiting.push_back({weight});
    else update(weight, gradient, -1);
  }

  constexpr void measure(int weight) {
    operation o = of_weight(weight, info<square_norm_t>, square_norm_t::rule_source, phase::update);
    o.operands.push(total(weight));
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
    for (const index& w : waiting) update(w.id, total(w.id), factor);
  }

  constexpr void update(int weight, int gradient, int factor) {
    operation o = of_weight(weight, info<adamw_t>, factor < 0 ? adamw_t::rule_source : adamw_t::clipped, phase::update);
    o.operands = {{weight, gradient}, 2};
    for (const char* moment : {".exp_avg", ".exp_avg_sq"}) {
      const int m = gradient_value(weight, moment);
      g[m].role = value_role::state;
      g[m].type = element::wide;
      o.operands.push(m);
    }
    if (factor >= 0) o.operands.push(factor);
    for (const char* suffix : {".next", ".exp_avg.next", ".exp_avg_sq.next"}) {
      const int r = gradient_value(weight, suffix);
      g[r].role = suffix[1] == 'n' ? value_role::weight : value_role::state;
      g[r].type = element::wide;
      o.results.push(r);
    }
    const int written_rank = g[weight].group.empty() ? 0 : g[weight].group.back() + 1;
    o.scalars = {{options.rate, options.beta1, options.beta2, options.epsilon, written_rank > 1 ? options.decay : 0.0,
                  static_cast<double>(options.warmup), static_cast<double>(options.steps), options.last_rate}, 8};
    g.add(o);
  }

  constexpr graph run() {
    const int forward_count = g.size();
    needed.resize(g.values.size());
    contributions.resize(g.values.size());
    std::vector<index> first_use(g.values.size());
    for (int v = 0; v < g.value_count(); ++v) needed[static_cast<std::size_t>(v)].set = trained(v);
    for (int i = 0; i < forward_count; ++i)
      for (int v : g.at(i).operands) {
        if (index& first = first_use[static_cast<std::size_t>(v)]; first.id < 0) first.id = i;
        if (wants(v) && !g.at(i).op->statistic)
          for (int r : g.at(i).results) needed[static_cast<std::size_t>(r)].set = true;
      }
    const int weights = g.value_count();
    const int seed = gradient_value(g.loss, ".seed");
    g[seed].role = value_role::constant;
    g[seed].fill.constant = 1.0 / options.micro_batches;
    contribute(g.loss, seed);
    for (int i = forward_count - 1; i >= 0; --i) {
      backward(i);
      const list<int, max_operands> operands = g.at(i).operands;
      for (int k = 0; k < operands.size(); ++k)
        if (const int v = operands[k]; operands.find(v) == k && v < weights && trained(v) && first_use[static_cast<std::size_t>(v)].id == i) {
          if (updates) finish(v);
          else total(v);
        }
    }
    update_all();
    g.passes = options.micro_batches;
    return g;
  }
};

}  // namespace detail

/// Adds backward operations and optimizer updates. `forward.loss` must be a scalar. Each weight is updated as soon as
/// its gradient is complete and nothing reads the old weight any more, or in the end where all gradients are waited for.
constexpr graph differentiate(const graph& forward, const training& options = {}) {
  return detail::differentiator{forward, options}.run();
}

/// Adds backward operations alone, of a graph that may end in any tensor (`forward.loss`), down to the weights and the
/// activations that come from outside.
constexpr graph gradients(const graph& forward) { return detail::differentiator{forward, {}, false}.run(); }

}  // namespace cfp
