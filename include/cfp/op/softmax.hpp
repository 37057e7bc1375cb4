// Causal softmax over keys, and cross entropy over a vocabulary: row statistics, then the result.
#pragma once

#include <cfp/op/catalogue.hpp>

#include <limits>

namespace cfp::inline v0_1 {

/// Largest scaled score of each query among the keys it may see; scalar: the scale.
inline constexpr struct causal_max_t : op<"b h q k -> b h q; max k; index q k", causal_max_t> {
  static constexpr bool statistic = true;
  static constexpr int scalars = 1;
  template <class T>
  CFP_HOST_DEVICE static T apply(T x, T scale, long q, long k) {
    return k <= q ? x * scale : -std::numeric_limits<T>::infinity();
  }
} causal_max;

/// Sum of exponentials relative to that.
inline constexpr struct causal_sum_t : op<"b h q k, b h q -> b h q; index q k", causal_sum_t> {
  static constexpr bool statistic = true;
  static constexpr int scalars = 1;
  template <class T>
  CFP_HOST_DEVICE static T apply(T x, T max, T scale, long q, long k) {
    return k <= q ? exp(x * scale - max) : T(0);
  }
} causal_sum;

namespace detail {
struct causal_dot_t : op<"b h q k, b h q k -> b h q", causal_dot_t> {
  static constexpr bool derived = true;
  static constexpr int scalars = 1;
  template <class T>
  CFP_HOST_DEVICE static T apply(T dz, T y, T) { return dz * y; }
};
struct causal_input_t : op<"b h q k, b h q k, b h q -> b h q k", causal_input_t> {
  static constexpr bool derived = true;
  static constexpr int scalars = 1;
  template <class T>
  CFP_HOST_DEVICE static T apply(T dz, T y, T dot, T scale) { return scale * y * (dz - dot); }
};
}  // namespace detail

/// softmax(scale x) over the keys k <= q. Operands: scores, causal_max, causal_sum; scalar: the scale.
inline constexpr struct causal_softmax_t : op<"b h q k, b h q, b h q -> b h q k; index q k", causal_softmax_t> {
  static constexpr int scalars = 1;
  template <class T>
  CFP_HOST_DEVICE static T apply(T x, T max, T sum, T scale, long q, long k) {
    return k <= q ? exp(x * scale - max) / sum : T(0);
  }
  static constexpr std::array<gradient_step, 2> gradient = {{
      {&info<detail::causal_dot_t>, detail::causal_dot_t::rule_source, {{{gradient_source::gradient, 0}, {result, 0}}, 2}, {{-1}, 1}},
      {&info<detail::causal_input_t>, detail::causal_input_t::rule_source,
       {{{gradient_source::gradient, 0}, {result, 0}, {step, 0}}, 3}, {{0}, 1}},
  }};
} causal_softmax;

/// Largest logit of each row.
inline constexpr struct logits_max_t : op<"... vocabulary -> ...; max vocabulary", logits_max_t> {
  static constexpr bool statistic = true;
  template <class T>
  CFP_HOST_DEVICE static T apply(T x) { return x; }
} logits_max;

/// Sum of exponentials relative to that.
inline constexpr struct logits_sum_t : op<"... vocabulary, ... -> ...", logits_sum_t> {
  static constexpr bool statistic = true;
  template <class T>
  CFP_HOST_DEVICE static T apply(T x, T max) { return exp(x - max); }
} logits_sum;

namespace detail {
struct cross_entropy_input_t
    : op<", ... vocabulary, ..., ..., ... -> ... vocabulary; index vocabulary", cross_entropy_input_t> {
  static constexpr bool derived = true;
  static constexpr int scalars = 1;
  static constexpr int index_operand = 2;
  template <class T>
  CFP_HOST_DEVICE static T apply(T dz, T x, long target, T max, T sum, T per, long column) {
    return dz * per * (exp(x - max) / sum - (column == target ? T(1) : T(0)));
  }
};
}  // namespace detail

/// Mean over rows of log(sum exp x) - x[target]. Operands: logits, targets, logits_max, logits_sum; scalar: 1/rows.
inline constexpr struct cross_entropy_t
    : op<"... vocabulary, ..., ..., ... -> ; onehot vocabulary", cross_entropy_t> {
  static constexpr int scalars = 1;
  static constexpr int index_operand = 1;
  template <class T>
  CFP_HOST_DEVICE static T apply(T x, T max, T sum, T per) { return per * (log(sum) + max - x); }
  static constexpr std::array<gradient_step, 1> gradient = {{
      {&info<detail::cross_entropy_input_t>, detail::cross_entropy_input_t::rule_source,
       {{{gradient_source::gradient, 0}, {operand, 0}, {operand, 1}, {operand, 2}, {operand, 3}}, 5}, {{0}, 1}},
  }};
} cross_entropy;

}  // namespace cfp
