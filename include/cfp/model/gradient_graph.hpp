// A graph as gradients are added to it: what the gradient of each value is a sum of.
#pragma once

#include <cfp/model/graph.hpp>
#include <cfp/op/catalogue.hpp>
#include <cfp/op/pieces.hpp>

namespace cfp::inline v0_1::detail {

struct gradient_graph {
  graph g;
  bool updates = true;                            // or gradients alone
  std::vector<mark> needed{};                     // values a gradient is wanted of
  std::vector<std::vector<int>> contributions{};  // of each value's gradient

  constexpr int gradient_value(int of, const char* suffix) {
    value v = g[of];
    v.label = named_at<long_name>(v.at, v.label, suffix);
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
      g[sum].type = g[o.operands[0]].type == element::wide || g[o.operands[1]].type == element::wide ? element::wide
                                                                                                     : element::real;
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

  // The gradient of a result that nothing reads.
  constexpr int zero(int of) {
    const int v = gradient_value(of, ".grad.zero");
    g[v].role = value_role::constant;
    return v;
  }
};

}  // namespace cfp::detail
