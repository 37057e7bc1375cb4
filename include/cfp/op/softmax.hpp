// Softmax over rows, masked softmax over keys, and cross entropy over a vocabulary: row statistics, then the result.
#pragma once

#include <cfp/op/catalogue.hpp>

namespace cfp::inline v0_1 {

namespace detail {
// Query q sees keys up to q + reach.
template <class T>
CFP_HOST_DEVICE bool sees(long q, long k, T reach) {
  return static_cast<T>(k) <= static_cast<T>(q) + reach;
}
}  // namespace detail

/// How far ahead a query sees: `causal` itself and what precedes it, `everywhere` all keys.
inline constexpr double causal = 0, everywhere = infinity<double>;

/// Largest scaled score of each query among the keys it sees; scalars: the scale, the reach.
inline constexpr struct masked_max_t : op<"... q k -> ... q; max k; index q k", masked_max_t> {
  static constexpr bool statistic = true;
  static constexpr int scalars = 2, reach_scalar = 1;
  template <class T>
  CFP_HOST_DEVICE static T apply(T x, T scale, T reach, long q, long k) {
    return detail::sees(q, k, reach) ? x * scale : -infinity<T>;
  }
} masked_max;

/// Sum of exponentials relative to that.
inline constexpr struct masked_sum_t : op<"... q k, ... q -> ... q; index q k", masked_sum_t> {
  static constexpr bool statistic = true;
  static constexpr int scalars = 2, reach_scalar = 1;
  template <class T>
  CFP_HOST_DEVICE static T apply(T x, T max, T scale, T reach, long q, long k) {
    return detail::sees(q, k, reach) ? exp(x * scale - max) : T(0);
  }
} masked_sum;

namespace detail {
struct softmax_dot_t : op<"... k, ... k -> ...", softmax_dot_t> {
  static constexpr bool derived = true;
  template <class T>
  CFP_HOST_DEVICE static T apply(T dz, T y) {
    return dz * y;
  }
};
struct softmax_input_t : op<"... k, ... k, ... -> ... k", softmax_input_t> {
  static constexpr bool derived = true;
  template <class T>
  CFP_HOST_DEVICE static T apply(T dz, T y, T dot) {
    return y * (dz - dot);
  }
};
struct masked_input_t : op<"... q k, ... q k, ... q -> ... q k", masked_input_t> {
  static constexpr bool derived = true;
  static constexpr int scalars = 2;
  template <class T>
  CFP_HOST_DEVICE static T apply(T dz, T y, T dot, T scale, T) {
    return scale * y * (dz - dot);
  }
};
}  // namespace detail

/// softmax(scale x) over the keys a query sees. Operands: scores, masked_max, masked_sum; scalars: the scale, the
/// reach.
inline constexpr struct masked_softmax_t : op<"... q k, ... q, ... q -> ... q k; index q k", masked_softmax_t> {
  static constexpr int scalars = 2, reach_scalar = 1;
  template <class T>
  CFP_HOST_DEVICE static T apply(T x, T max, T sum, T scale, T reach, long q, long k) {
    return detail::sees(q, k, reach) ? exp(x * scale - max) * (T(1) / sum) : T(0);
  }
  static constexpr std::array<gradient_step, 2> gradient = {{
      {&info<detail::softmax_dot_t>,
       "... q k, ... q k -> ... q",
       {{{gradient_source::gradient, 0}, {result, 0}}, 2},
       {{-1}, 1}},
      {&info<detail::masked_input_t>,
       detail::masked_input_t::rule_source,
       {{{gradient_source::gradient, 0}, {result, 0}, {step, 0}}, 3},
       {{0}, 1}},
  }};
} masked_softmax;

/// Largest logit of each row.
inline constexpr struct logits_max_t : op<"... vocabulary -> ...; max vocabulary", logits_max_t> {
  static constexpr bool statistic = true;
  template <class T>
  CFP_HOST_DEVICE static T apply(T x) {
    return x;
  }
} logits_max;

/// Sum of exponentials relative to that.
inline constexpr struct logits_sum_t : op<"... vocabulary, ... -> ...", logits_sum_t> {
  static constexpr bool statistic = true;
  template <class T>
  CFP_HOST_DEVICE static T apply(T x, T max) {
    return exp(x - max);
  }
} logits_sum;

/// Exponentials over their sum. Operands: logits, logits_max, logits_sum.
inline constexpr struct softmax_t : op<"... vocabulary, ..., ... -> ... vocabulary", softmax_t> {
  template <class T>
  CFP_HOST_DEVICE static T apply(T x, T max, T sum) {
    return exp(x - max) * (T(1) / sum);
  }
  static constexpr std::array<gradient_step, 2> gradient = {{
      {&info<detail::softmax_dot_t>,
       "... vocabulary, ... vocabulary -> ...",
       {{{gradient_source::gradient, 0}, {result, 0}}, 2},
       {{-1}, 1}},
      {&info<detail::softmax_input_t>,
       "... vocabulary, ... vocabulary, ... -> ... vocabulary",
       {{{gradient_source::gradient, 0}, {result, 0}, {step, 0}}, 3},
       {{0}, 1}},
  }};
} softmax;

namespace detail {
struct cross_entropy_input_t
    : op<", ... vocabulary, ..., ..., ... -> ... vocabulary; index vocabulary", cross_entropy_input_t> {
  static constexpr bool derived = true;
  static constexpr int scalars = 1;
  static constexpr int index_operand = 2;
  template <class T>
  CFP_HOST_DEVICE static T apply(T dz, T x, long target, T max, T sum, T per, long column) {
    if (target < 0) return T(0);
    return dz * per * (exp(x - max) * (T(1) / sum) - (column == target ? T(1) : T(0)));
  }
};
}  // namespace detail

/// Mean over rows of log(sum exp x) - x[target]. Operands: logits, targets, logits_max, logits_sum; scalar: 1/rows. A
/// row whose target is below 0 has no part in the sum and no gradient; `mean_cross_entropy` of a model leaves it out of
/// the mean too.
inline constexpr struct cross_entropy_t : op<"... vocabulary, ..., ..., ... -> ; onehot vocabulary", cross_entropy_t> {
  static constexpr int scalars = 1;
  static constexpr int index_operand = 1;
  template <class T>
  CFP_HOST_DEVICE static T apply(T x, T max, T sum, T per) {
    return per * (log(sum) + max - x);
  }
  static constexpr std::array<gradient_step, 1> gradient = {{
      {&info<detail::cross_entropy_input_t>,
       detail::cross_entropy_input_t::rule_source,
       {{{gradient_source::gradient, 0}, {operand, 0}, {operand, 1}, {operand, 2}, {operand, 3}}, 5},
       {{0}, 1}},
  }};
} cross_entropy;

/// How many targets are not ignored. Operands: logits_sum, targets.
inline constexpr struct counted_targets_t : op<"..., ... -> ", counted_targets_t> {
  static constexpr bool statistic = true;
  static constexpr int index_operand = 1;
  template <class T>
  CFP_HOST_DEVICE static T apply(T, long target) {
    return target < 0 ? T(0) : T(1);
  }
} counted_targets;

/// A sum over a count: what a mean is, and 0 where nothing was counted.
inline constexpr struct mean_of_t : op<"..., ... -> ...", mean_of_t> {
  template <class T>
  CFP_HOST_DEVICE static T apply(T sum, T count) {
    return count > T(0) ? sum / count : T(0);
  }
} mean_of;

}  // namespace cfp
