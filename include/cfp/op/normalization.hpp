// Layer and root-mean-square normalisation over the last dimension: row statistics, then the normalised result.
// Splitting the row leaves partial statistics, so it owes all-reduces of the size of a row count and nothing more.
#pragma once

#include <cfp/op/catalogue.hpp>

namespace cfp::inline v0_1 {

/// Row sum.
inline constexpr struct norm_sum_t : op<"... width -> ...", norm_sum_t> {
  static constexpr bool statistic = true;
  template <class T>
  CFP_HOST_DEVICE static T apply(T x) {
    return x;
  }
} norm_sum;

/// Row sum of squared distances to the mean; scalar: 1/width.
inline constexpr struct norm_square_t : op<"... width, ... -> ...", norm_square_t> {
  static constexpr bool statistic = true;
  static constexpr int scalars = 1;
  template <class T>
  CFP_HOST_DEVICE static T apply(T x, T sum, T per) {
    return (x - sum * per) * (x - sum * per);
  }
} norm_square;

namespace detail {

// Divisions are by numbers of the whole row, once for all of its elements.
template <class T>
CFP_HOST_DEVICE T normal(T x, T sum, T square, T per, T epsilon) {
  return (x - sum * per) * (T(1) / sqrt(square * per + epsilon));
}
template <lit Rule, class Op>
struct norm_op : op<Rule, Op> {
  static constexpr bool derived = true;
  static constexpr int scalars = 2;
};
// Row sums of dz w and of dz w xhat, shared by all elements of a row.
struct norm_dot_t : norm_op<"... width, width -> ...", norm_dot_t> {
  template <class T>
  CFP_HOST_DEVICE static T apply(T dz, T w, T, T) {
    return dz * w;
  }
};
struct norm_dot_normal_t : norm_op<"... width, ... width, ..., ..., width -> ...", norm_dot_normal_t> {
  template <class T>
  CFP_HOST_DEVICE static T apply(T dz, T x, T sum, T square, T w, T per, T epsilon) {
    return dz * w * normal(x, sum, square, per, epsilon);
  }
};
struct norm_input_t : norm_op<"... width, ... width, ..., ..., width, ..., ... -> ... width", norm_input_t> {
  template <class T>
  CFP_HOST_DEVICE static T apply(T dz, T x, T sum, T square, T w, T dot, T dot_normal, T per, T epsilon) {
    const T r = T(1) / sqrt(square * per + epsilon);
    return r * (dz * w - per * (dot + (x - sum * per) * r * dot_normal));
  }
};
struct norm_weight_t : norm_op<"... width, ... width, ..., ... -> width", norm_weight_t> {
  template <class T>
  CFP_HOST_DEVICE static T apply(T dz, T x, T sum, T square, T per, T epsilon) {
    return dz * normal(x, sum, square, per, epsilon);
  }
};

}  // namespace detail

/// y = (x - mean) / sqrt(variance + epsilon) * weight + bias. Operands: x, norm_sum(x), norm_square(x), weight, bias;
/// scalars: 1/width, epsilon. Its gradient along x is the whole one, statistics included.
inline constexpr struct layer_norm_t : op<"... width, ..., ..., width, width -> ... width", layer_norm_t> {
  static constexpr int scalars = 2;
  template <class T>
  CFP_HOST_DEVICE static T apply(T x, T sum, T square, T weight, T shift, T per, T epsilon) {
    return detail::normal(x, sum, square, per, epsilon) * weight + shift;
  }
  static constexpr std::array<gradient_step, 5> gradient = {{
      {&info<detail::norm_dot_t>,
       detail::norm_dot_t::rule_source,
       {{{gradient_source::gradient, 0}, {operand, 3}}, 2},
       {{-1}, 1}},
      {&info<detail::norm_dot_normal_t>,
       detail::norm_dot_normal_t::rule_source,
       {{{gradient_source::gradient, 0}, {operand, 0}, {operand, 1}, {operand, 2}, {operand, 3}}, 5},
       {{-1}, 1}},
      {&info<detail::norm_input_t>,
       detail::norm_input_t::rule_source,
       {{{gradient_source::gradient, 0}, {operand, 0}, {operand, 1}, {operand, 2}, {operand, 3}, {step, 0}, {step, 1}},
        7},
       {{0}, 1}},
      {&info<detail::norm_weight_t>,
       detail::norm_weight_t::rule_source,
       {{{gradient_source::gradient, 0}, {operand, 0}, {operand, 1}, {operand, 2}}, 4},
       {{3}, 1}},
      {&info<copy_t>, "... width -> width", {{{gradient_source::gradient, 0}}, 1}, {{4}, 1}},
  }};
} layer_norm;

/// The same without a bias: (x - mean) / sqrt(variance + epsilon) * weight.
inline constexpr struct layer_norm_unbiased_t : op<"... width, ..., ..., width -> ... width", layer_norm_unbiased_t> {
  static constexpr int scalars = 2;
  template <class T>
  CFP_HOST_DEVICE static T apply(T x, T sum, T square, T weight, T per, T epsilon) {
    return detail::normal(x, sum, square, per, epsilon) * weight;
  }
  static constexpr std::array<gradient_step, 4> gradient = {
      {layer_norm_t::gradient[0], layer_norm_t::gradient[1], layer_norm_t::gradient[2], layer_norm_t::gradient[3]}};
} layer_norm_unbiased;

/// Row sum of squares.
inline constexpr struct rms_square_t : op<"... width -> ...", rms_square_t> {
  static constexpr bool statistic = true;
  template <class T>
  CFP_HOST_DEVICE static T apply(T x) {
    return x * x;
  }
} rms_square;

namespace detail {
struct rms_dot_t : norm_op<"... width, ... width, width -> ...", rms_dot_t> {
  template <class T>
  CFP_HOST_DEVICE static T apply(T dz, T x, T w, T, T) {
    return dz * x * w;
  }
};
struct rms_input_t : norm_op<"... width, ... width, ..., width, ... -> ... width", rms_input_t> {
  template <class T>
  CFP_HOST_DEVICE static T apply(T dz, T x, T square, T w, T dot, T per, T epsilon) {
    const T r = T(1) / sqrt(square * per + epsilon);
    return r * (dz * w - per * x * r * r * dot);
  }
};
struct rms_weight_t : norm_op<"... width, ... width, ... -> width", rms_weight_t> {
  template <class T>
  CFP_HOST_DEVICE static T apply(T dz, T x, T square, T per, T epsilon) {
    return dz * x * (T(1) / sqrt(square * per + epsilon));
  }
};
}  // namespace detail

/// y = x / sqrt(mean(x^2) + epsilon) * weight. Operands: x, rms_square(x), weight; scalars: 1/width, epsilon. Its
/// gradient along x is the whole one, the statistic included.
inline constexpr struct rms_norm_t : op<"... width, ..., width -> ... width", rms_norm_t> {
  static constexpr int scalars = 2;
  template <class T>
  CFP_HOST_DEVICE static T apply(T x, T square, T weight, T per, T epsilon) {
    return x * (T(1) / sqrt(square * per + epsilon)) * weight;
  }
  static constexpr std::array<gradient_step, 3> gradient = {{
      {&info<detail::rms_dot_t>,
       detail::rms_dot_t::rule_source,
       {{{gradient_source::gradient, 0}, {operand, 0}, {operand, 2}}, 3},
       {{-1}, 1}},
      {&info<detail::rms_input_t>,
       detail::rms_input_t::rule_source,
       {{{gradient_source::gradient, 0}, {operand, 0}, {operand, 1}, {operand, 2}, {step, 0}}, 5},
       {{0}, 1}},
      {&info<detail::rms_weight_t>,
       detail::rms_weight_t::rule_source,
       {{{gradient_source::gradient, 0}, {operand, 0}, {operand, 1}}, 3},
       {{2}, 1}},
  }};
} rms_norm;

}  // namespace cfp
