// What a training step does beside forward and backward: AdamW with decoupled weight decay, in place; the norm of all
// gradients that they are clipped by; gradients added up over micro-batches.
#pragma once

#include <cfp/op/math.hpp>
#include <cfp/op/op.hpp>

#include <cmath>

namespace cfp::inline v0_1 {

/// Operands: weight, gradient, first and second moment, and where gradients are clipped what they are multiplied by;
/// results overwrite weight and moments. Scalars: learning rate, beta1, beta2, epsilon, decay, and of the schedule the
/// steps of warm-up, all steps, the last rate. The step number comes from the executor.
inline constexpr struct adamw_t : op<"..., ..., ..., ... -> ..., ..., ...", adamw_t> {
  static constexpr std::string_view clipped = "..., ..., ..., ..., -> ..., ..., ...";
  static constexpr op_body body = op_body::update;
  static constexpr bool derived = true;
  static constexpr int scalars = 8;

  /// m and v are updated; returns the new weight. `correct1/2` = 1 / (1 - beta^step).
  template <class T>
  CFP_HOST_DEVICE static T apply(T w, T g, T& m, T& v, T rate, T beta1, T beta2, T epsilon, T decay, T correct1,
                                 T correct2) {
    m = beta1 * m + (T(1) - beta1) * g;
    v = beta2 * v + (T(1) - beta2) * g * g;
    return w - rate * (m * correct1 / (sqrt(v * correct2) + epsilon) + decay * w);
  }

  /// The learning rate of a step, counted from 1: it rises in proportion over the warm-up, then falls along half a
  /// cosine to the last rate at step `steps` (0: stays).
  CFP_HOST_DEVICE static double rate_at(double step, double rate, double warmup, double steps, double last) {
    if (step < warmup) return rate * step / warmup;
    if (steps <= warmup) return rate;
    const double done = step < steps ? (step - warmup) / (steps - warmup) : 1.0;
    return last + (rate - last) * 0.5 * (1 + std::cos(3.14159265358979323846 * done));
  }
} adamw;

/// Sum of squares of all elements.
inline constexpr struct square_norm_t : op<"... -> ", square_norm_t> {
  static constexpr bool derived = true;
  template <class T>
  CFP_HOST_DEVICE static T apply(T x) {
    return x * x;
  }
} square_norm;

/// What gradients are multiplied by so that their norm is at most the scalar. Operand: the sum of squares of all of
/// them.
inline constexpr struct clip_factor_t : op<"... -> ...", clip_factor_t> {
  static constexpr bool derived = true;
  static constexpr int scalars = 1;
  template <class T>
  CFP_HOST_DEVICE static T apply(T squares, T most) {
    return squares > most * most ? most / sqrt(squares) : T(1);
  }
} clip_factor;

/// Adds a gradient to what earlier micro-batches of the step gave; the result overwrites the first operand. The number
/// of the micro-batch comes from the executor.
inline constexpr struct accumulate_t : op<"..., ... -> ...", accumulate_t> {
  static constexpr op_body body = op_body::accumulate;
  static constexpr linearity linear = linearity::all;
  static constexpr bool derived = true;
} accumulate;

}  // namespace cfp
