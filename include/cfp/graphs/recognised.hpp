// What exporters take apart, found again: softmax, normalisation, GELU, gates, causal masks. In their place stand the
// catalogue's operators, which have kernels everywhere and gradients that sees the whole of them.
#pragma once

#include <cfp/graphs/element_function.hpp>
#include <cfp/graphs/graph_copy.hpp>
#include <cfp/model/batch.hpp>
#include <cfp/op/activation.hpp>
#include <cfp/op/elementary.hpp>
#include <cfp/op/normalization.hpp>
#include <cfp/op/softmax.hpp>

#include <cmath>
#include <cstddef>
#include <string>
#include <variant>
#include <vector>

namespace cfp::inline v0_1::graphs {

namespace detail {

class pattern_finder {
 public:
  pattern_finder(const graph& from, const batch& fixed) : from_(from), fixed_(fixed), copy_(from) {}

  graph run() {
    for (int i = 0; i < from_.size(); ++i) {
      const operation& o = from_.at(i);
      if (!(softmax_at(o) || norm_at(o) || function_at(o) || score_at(o))) copy_.take(i);
    }
    return copy_.finished();
  }

 private:
  // The operation that makes a value, if it is one of `op`.
  const operation* made_by(int v, const op_info& op) const {
    const int p = v < 0 ? -1 : from_[v].producer;
    return p >= 0 && from_.at(p).op == &op ? &from_.at(p) : nullptr;
  }
  // Whether operand k has all of the result's dimensions, or all but the last.
  static bool is_full(const operation& o, int k) { return o.r.operands[k] == o.r.results[0]; }
  static bool is_row(const operation& o, int k) {
    pattern rows = o.r.results[0];
    if (rows.factors.empty()) return false;
    rows.factors.pop(), rows.group.pop();
    return o.r.operands[k] == rows;
  }
  static bool is_last(const operation& o, int k) {
    const pattern &all = o.r.results[0], &p = o.r.operands[k];
    return p.factors.size() == 1 && !all.factors.empty() && p.factors[0] == all.factors.back();
  }
  // The sum over the last dimension of what a value is, or -1.
  int summed_row(int v) const {
    const int p = v < 0 ? -1 : from_[v].producer;
    if (p < 0 || !rearranges(*from_.at(p).op)) return -1;
    const operation& o = from_.at(p);
    pattern rows = o.r.operands[0];
    rows.factors.pop(), rows.group.pop();
    return rows == o.r.results[0] ? o.operands[0] : -1;
  }
  // The mean over the last dimension of what a value is, or -1.
  int mean_row(int v) const {
    const operation* const o = made_by(v, info<scaled_t>);
    const int of = o == nullptr ? -1 : summed_row(o->operands[0]);
    if (of < 0) return -1;
    const double n = static_cast<double>(from_[of].shape.back());
    return std::fabs(o->scalars[0] * n - 1) < 1e-6 ? of : -1;
  }

  // exp(x - max x) / sum of it.
  bool softmax_at(const operation& o) {
    if (o.op != &info<elementary::divide_t> || !is_full(o, 0) || !is_row(o, 1)) return false;
    const operation* const e = made_by(o.operands[0], info<elementary::exponential_t>);
    if (e == nullptr || summed_row(o.operands[1]) != o.operands[0]) return false;
    const operation* const less = made_by(e->operands[0], info<elementary::subtract_t>);
    if (less == nullptr || !is_full(*less, 0) || !is_row(*less, 1)) return false;
    const operation* const max = made_by(less->operands[1], info<elementary::largest_t>);
    const int x = less->operands[0];
    if (max == nullptr || max->operands[0] != x) return false;
    if (from_[x].rank() >= 2 && is_score(x)) return emit_score(o.results[0], x, 1, everywhere);
    graph_builder& b = copy_.build;
    const int to = copy_.of(x);
    b.label = from_[o.results[0]].label.view();
    const int top = b.record_as_written(info<logits_max_t>, {to});
    const int sum = b.record_as_written(info<logits_sum_t>, {to, top});
    copy_.replace(o.results[0], b.record_as_written(info<softmax_t>, {to, top, sum}));
    return true;
  }
  // Shares of what attention compares: a product of two tensors that are computed.
  bool is_score(int v) const {
    for (int steps = 0; steps < 4; ++steps) {
      const int p = v < 0 ? -1 : from_[v].producer;
      if (p < 0) return false;
      const operation& o = from_.at(p);
      if (o.op->body == op_body::product)
        return from_[o.operands[0]].producer >= 0 && from_[o.operands[1]].producer >= 0;
      const bool chooses = o.op == &info<elementary::chosen_t>;
      v = o.op->body == op_body::map ? o.operands[chooses ? 1 : 0] : -1;
    }
    return false;
  }
  // A softmax of scores by parts, perhaps as an exporter that knows softmax left it: scales and causal masks go in.
  bool score_at(const operation& o) {
    if (o.op != &info<masked_softmax_t>) return false;
    return emit_score(o.results[0], o.operands[0], o.scalars[0], o.scalars[1]);
  }
  bool emit_score(int result, int x, double scale, double reach) {
    for (;;) {
      if (const operation* const by = made_by(x, info<scaled_t>); by != nullptr && by->scalars[0] > 0) {
        scale *= by->scalars[0];
        x = by->operands[0];
      } else if (const int inside = unmasked(x); inside >= 0 && reach == everywhere) {
        reach = causal;
        x = inside;
      } else {
        break;
      }
    }
    graph_builder& b = copy_.build;
    const int to = copy_.of(x);
    b.label = from_[result].label.view();
    const int max = b.record_as_written(info<masked_max_t>, {to}, {scale, reach});
    const int sum = b.record_as_written(info<masked_sum_t>, {to, max}, {scale, reach});
    copy_.replace(result, b.record_as_written(info<masked_softmax_t>, {to, max, sum}, {scale, reach}));
    return true;
  }
  // What a causal mask was put on: known numbers that add so little to what lies ahead that nothing of it is left, or
  // choose such a number there.
  int unmasked(int v) const {
    const int p = v < 0 ? -1 : from_[v].producer;
    if (p < 0) return -1;
    const operation& o = from_.at(p);
    if (o.op == &info<add_t> && is_full(o, 0) && is_causal(o, 1, 0, -1e9)) return o.operands[0];
    if (o.op == &info<elementary::chosen_t> && is_full(o, 1) && is_nothing(o.operands[2]) && is_causal(o, 0, 1, 0))
      return o.operands[1];
    return -1;
  }
  bool is_nothing(int v) const { return from_[v].role == value_role::constant && from_[v].fill.constant <= -1e9; }
  // Whether operand k is of queries and keys, `seen` where a key is not ahead and `hidden` or less where it is.
  bool is_causal(const operation& o, int k, double seen, double hidden) const {
    const pattern &all = o.r.results[0], &p = o.r.operands[k];
    const int n = all.factors.size();
    const auto at = fixed_.find(std::string(from_[o.operands[k]].label.view()));
    if (n < 2 || p.factors.size() != 2 || p.factors[0] != all.factors[n - 2] || p.factors[1] != all.factors[n - 1] ||
        at == fixed_.end())
      return false;
    const auto* const mask = std::get_if<std::vector<float>>(&at->second);
    const long rows = o.sizes[p.factors[0]], columns = o.sizes[p.factors[1]];
    if (mask == nullptr || rows != columns) return false;
    for (long q = 0; q < rows; ++q)
      for (long c = 0; c < columns; ++c) {
        const double m = static_cast<double>((*mask)[static_cast<std::size_t>(q * columns + c)]);
        if (c <= q ? m != seen : !(m <= hidden)) return false;
      }
    return true;
  }

  // (x - mean x) / root(mean square + epsilon) * weight, and perhaps + bias; without the mean where nothing takes it.
  bool norm_at(const operation& o) {
    const bool adds = o.op == &info<add_t> && is_full(o, 0) && is_last(o, 1);
    const operation* const scaled = adds ? made_by(o.operands[0], info<mul_t>) : o.op == &info<mul_t> ? &o : nullptr;
    if (scaled == nullptr || !is_full(*scaled, 0) || !is_last(*scaled, 1)) return false;
    const int normal = scaled->operands[0];
    const operation* const times = made_by(normal, info<mul_t>);
    const operation* const over = made_by(normal, info<elementary::divide_t>);
    const operation* const n = times != nullptr ? times : over;
    if (n == nullptr || !is_full(*n, 0) || !is_row(*n, 1)) return false;
    const operation* const root = times != nullptr ? made_by(n->operands[1], info<elementary::over_root_t>)
                                                   : made_by(n->operands[1], info<elementary::root_t>);
    const operation* const shifted =
        root == nullptr ? nullptr : made_by(root->operands[0], info<elementary::shifted_t>);
    const int square = shifted == nullptr ? -1 : mean_row(shifted->operands[0]), d = n->operands[0];
    if (square < 0 || !is_square(square, d)) return false;
    const operation* const less = made_by(d, info<elementary::subtract_t>);
    const bool centred =
        less != nullptr && is_full(*less, 0) && is_row(*less, 1) && mean_row(less->operands[1]) == less->operands[0];
    return emit_norm(o, centred ? less->operands[0] : d, centred, scaled->operands[1], adds ? o.operands[1] : -1,
                     shifted->scalars[0]);
  }
  bool is_square(int v, int of) const {
    if (const operation* const s = made_by(v, info<elementary::square_t>)) return s->operands[0] == of;
    const operation* const m = made_by(v, info<mul_t>);
    return m != nullptr && is_full(*m, 0) && is_full(*m, 1) && m->operands[0] == of && m->operands[1] == of;
  }
  bool emit_norm(const operation& o, int x, bool centred, int weight, int bias, double epsilon) {
    if (!centred && bias >= 0) return false;
    graph_builder& b = copy_.build;
    b.label = from_[o.results[0]].label.view();
    const double per = 1 / static_cast<double>(from_[x].shape.back());
    const int to = copy_.of(x), w = copy_.of(weight);
    int out = -1;
    if (!centred) {
      out =
          b.record_as_written(info<rms_norm_t>, {to, b.record_as_written(info<rms_square_t>, {to}), w}, {per, epsilon});
    } else {
      const int sum = b.record_as_written(info<norm_sum_t>, {to});
      const int square = b.record_as_written(info<norm_square_t>, {to, sum}, {per});
      out = bias < 0 ? b.record_as_written(info<layer_norm_unbiased_t>, {to, sum, square, w}, {per, epsilon})
                     : b.record_as_written(info<layer_norm_t>, {to, sum, square, w, copy_.of(bias)}, {per, epsilon});
    }
    copy_.replace(o.results[0], out);
    return true;
  }

  // A product that is a known function of one tensor, or such a gate times another.
  bool function_at(const operation& o) {
    const bool is_product = o.op == &info<mul_t> && is_full(o, 0) && is_full(o, 1);
    if (!is_product && o.op != &info<scaled_t>) return false;
    for (const element_function& f : functions_of(from_, o.results[0])) {
      if (f.is(gelu_t::apply<double>)) return emit(o, info<gelu_t>, {f.of()});
      if (f.is(gelu_exact_t::apply<double>)) return emit(o, info<gelu_exact_t>, {f.of()});
    }
    for (const int k : {0, 1})
      if (is_product)
        for (const element_function& f : functions_of(from_, o.operands[k]))
          if (f.is([](double x) { return x * sigmoid(x); }))
            return emit(o, info<gated_silu_t>, {f.of(), o.operands[1 - k]});
    return false;
  }
  bool emit(const operation& o, const op_info& op, const std::vector<int>& operands) {
    std::vector<int> to;
    for (const int v : operands) to.push_back(copy_.of(v));
    copy_.build.label = from_[o.results[0]].label.view();
    copy_.replace(o.results[0], copy_.build.record_as_written(op, to));
    return true;
  }

  const graph& from_;
  const batch& fixed_;
  graph_copy copy_;
};

}  // namespace detail

/// The same function of the same inputs, in operators of the catalogue where it has them.
inline graph recognised(const graph& from, const batch& fixed) { return detail::pattern_finder(from, fixed).run(); }

}  // namespace cfp::graphs
