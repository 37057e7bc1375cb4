// Operations that a step does for a weight: on tensors that have some of its dimensions each.
#pragma once

#include <cfp/model/gradient_graph.hpp>
#include <cfp/model/training.hpp>

#include <initializer_list>
#include <vector>

namespace cfp::inline v0_1::detail {

struct weight_operations {
  gradient_graph& sums;
  const training& options;
  graph& g = sums.g;

  using dimensions = list<signed char, max_dims>;  // of a weight, ascending

  constexpr dimensions all_of(int weight) const {
    dimensions out;
    for (int d = 0; d < g[weight].rank(); ++d) out.push(static_cast<signed char>(d));
    return out;
  }
  // Those of some written dimensions: [first, end).
  constexpr dimensions some_of(int weight, int first, int end) const {
    dimensions out;
    for (int d = 0; d < g[weight].rank(); ++d)
      if (g[weight].group[d] >= first && g[weight].group[d] < end) out.push(static_cast<signed char>(d));
    return out;
  }
  constexpr int written_rank(int weight) const { return g[weight].group.empty() ? 0 : g[weight].group.back() + 1; }

  // An operation of the step that belongs to a weight. Its operands and results have some of the weight's dimensions
  // each.
  constexpr operation of_weight(int weight, const op_info& op, std::initializer_list<dimensions> operands,
                                std::initializer_list<dimensions> results, phase when) const {
    operation o;
    o.op = &op;
    o.when = when;
    o.hub = weight;
    for (int d = 0; d < g[weight].rank(); ++d) {
      bool has = false;
      for (const dimensions& some : operands) has = has || some.contains(static_cast<signed char>(d));
      if (!has) continue;
      o.r.factors.push({hub_factor(d)});
      o.sizes.push(g[weight].shape[d]);
    }
    for (const dimensions& some : operands) o.r.operands.push(pattern_of(o.r, some));
    for (const dimensions& some : results) o.r.results.push(pattern_of(o.r, some));
    return o;
  }
  static constexpr pattern pattern_of(const rule& r, const dimensions& some) {
    pattern p;
    for (const signed char d : some) {
      p.factors.push(static_cast<signed char>(r.find(hub_factor(d).view())));
      p.group.push(static_cast<signed char>(p.group.size()));
    }
    return p;
  }
  constexpr operation of_weight(int weight, const op_info& op, int operands, int results, phase when) const {
    operation o = of_weight(weight, op, {all_of(weight)}, {all_of(weight)}, when);
    while (o.r.operands.size() < operands) o.r.operands.push(o.r.operands[0]);
    while (o.r.results.size() < results) o.r.results.push(o.r.results[0]);
    return o;
  }

  // A tensor of the step that has some of a weight's dimensions; it is wide.
  constexpr int made(int weight, const char* suffix, const dimensions& some, value_role role = value_role::gradient) {
    const int v = sums.gradient_value(weight, suffix);
    value& x = g[v];
    x.role = role;
    x.type = element::wide;
    x.shape = {};
    x.dims = {};
    x.group = {};
    for (const signed char d : some) {
      x.shape.push(g[weight].shape[d]);
      x.dims.push(g[weight].dims[d]);
      x.group.push(g[weight].group[d]);
    }
    return v;
  }
  constexpr int number(int of, const char* suffix) { return made(of, suffix, {}); }
  constexpr int result(operation& o, int v) {
    o.results.push(v);
    g.add(o);
    return v;
  }
  constexpr double decay_of(int weight) const { return written_rank(weight) > 1 ? options.decay : 0.0; }
};

}  // namespace cfp::detail
