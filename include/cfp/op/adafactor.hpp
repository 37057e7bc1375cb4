// Adafactor (Shazeer and Stern, arXiv 1804.04235) without momentum, at the given rate: of a matrix a mean square for
// each row and each column stands for one for each number, and the change of a tensor is at most `rate` on average.
#pragma once

#include <cfp/op/math.hpp>
#include <cfp/op/op.hpp>

#include <cmath>

namespace cfp::inline v0_1 {

/// Sums of squares over what the result lacks.
struct square_sum_t : op<"... -> ", square_sum_t> {
  static constexpr bool derived = true;
  template <class T>
  CFP_HOST_DEVICE static T apply(T x) {
    return x * x;
  }
};

/// A gradient times what all are multiplied by.
struct clipped_t : op<"..., -> ...", clipped_t> {
  static constexpr bool derived = true;
  template <class T>
  CFP_HOST_DEVICE static T apply(T x, T by) {
    return x * by;
  }
};

/// The mean square so far, in place, from sums of squares of a step. Scalars: how many were added up, and what is added
/// to their mean. The step number comes from the executor.
struct mean_square_t : op<"..., ... -> ...", mean_square_t> {
  static constexpr op_body body = op_body::update;
  static constexpr bool derived = true;
  static constexpr int scalars = 2;

  /// What stays of the mean before, at a step counted from 1: 1 - step^-0.8, so that the first one is that of the step.
  CFP_HOST_DEVICE static double stays(double step) { return 1 - std::pow(step, -0.8); }
  template <class T>
  CFP_HOST_DEVICE static T apply(T mean, T sum, T stays, T count, T least) {
    return stays * mean + (T(1) - stays) * (sum / count + least);
  }
};

/// Squares of a gradient relative to its mean square, added up. Operands: gradient, mean square.
struct relative_square_t : op<"..., ... -> ", relative_square_t> {
  static constexpr bool derived = true;
  template <class T>
  CFP_HOST_DEVICE static T apply(T g, T mean) {
    return g * g / mean;
  }
};

/// The same for a matrix. Operands: gradient, mean squares of its rows and of its columns, the sum of those of rows.
/// Scalar: the number of rows.
struct relative_square_of_matrix_t : op<"rows columns, rows, columns, -> ", relative_square_of_matrix_t> {
  static constexpr bool derived = true;
  static constexpr int scalars = 1;

  /// What a gradient is multiplied by: the inverse root of row / (sum / rows) * column.
  template <class T>
  CFP_HOST_DEVICE static T factor(T row, T column, T sum, T rows) {
    return T(1) / (sqrt(row * rows / sum) * sqrt(column));
  }
  template <class T>
  CFP_HOST_DEVICE static T apply(T g, T row, T column, T sum, T rows) {
    const T relative = g * factor(row, column, sum, rows);
    return relative * relative;
  }
};

/// The new weight, in place. Operands: weight, gradient, mean square, sum of relative squares. Scalars: numbers of the
/// tensor, decay, and of the learning rate what AdamW's has: its highest, steps of warm-up, all steps, the last one.
struct adafactor_t : op<"..., ..., ..., -> ...", adafactor_t> {
  static constexpr op_body body = op_body::update;
  static constexpr bool derived = true;
  static constexpr int scalars = 6;

  /// What a relative change is multiplied by: its root mean square is at most one.
  template <class T>
  CFP_HOST_DEVICE static T limit(T sum, T count) {
    const T size = sqrt(sum / count);
    return size > T(1) ? T(1) / size : T(1);
  }
  template <class T>
  CFP_HOST_DEVICE static T apply(T w, T relative, T rate, T decay) {
    return w - rate * (relative + decay * w);
  }
};

/// The same for a matrix. Operands: weight, gradient, mean squares of rows and columns, the sum of those of rows, the
/// sum of relative squares. Scalars: those, and the number of rows.
struct adafactor_of_matrix_t
    : op<"rows columns, rows columns, rows, columns, , -> rows columns", adafactor_of_matrix_t> {
  static constexpr op_body body = op_body::update;
  static constexpr bool derived = true;
  static constexpr int scalars = 7;
};

}  // namespace cfp
