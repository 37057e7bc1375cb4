// AdamW with decoupled weight decay, in place.
#pragma once

#include <cfp/op/op.hpp>

namespace cfp::inline v0_1 {

/// Operands: weight, gradient, first and second moment; results overwrite weight and moments.
/// Scalars: learning rate, beta1, beta2, epsilon, decay. The step number comes from the executor.
inline constexpr struct adamw_t : op<"..., ..., ..., ... -> ..., ..., ...", adamw_t> {
  static constexpr op_body body = op_body::update;
  static constexpr bool derived = true;
  static constexpr int scalars = 5;

  /// m and v are updated; returns the new weight. `correct1/2` = 1 / (1 - beta^step).
  template <class T>
  CFP_HOST_DEVICE static T apply(T w, T g, T& m, T& v, T rate, T beta1, T beta2, T epsilon, T decay, T correct1,
                                 T correct2) {
    m = beta1 * m + (T(1) - beta1) * g;
    v = beta2 * v + (T(1) - beta2) * g * g;
    return w - rate * (m * correct1 / (sqrt(v * correct2) + epsilon) + decay * w);
  }
} adamw;

}  // namespace cfp
