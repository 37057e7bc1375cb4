// The operators transformers need. Shapes are in the rules; formulas in the functors; `...` is any leading dimensions.
#pragma once

#include <cfp/op/math.hpp>
#include <cfp/op/op.hpp>

namespace cfp::inline v0_1 {

using enum gradient_source::kind_t;

/// y = x w, w of shape (in, out).
inline constexpr struct linear_t : contraction<"... in, in out -> ... out", linear_t> {
} linear;

/// y = x w^T, w of shape (out, in), as checkpoints of `torch.nn.Linear` and embedding tables hold it.
inline constexpr struct dense_t : contraction<"... in, out in -> ... out", dense_t> {
} dense;

/// The same with a weight for each expert.
inline constexpr struct expert_dense_t
    : contraction<"experts ... in, experts out in -> experts ... out", expert_dense_t> {
} expert_dense;

/// The same elements under another rule; what gradients of unit slope become.
inline constexpr struct copy_t : movement<"... -> ...", copy_t> {
} copy;

inline constexpr struct add_t : addition<"..., ... -> ...", add_t> {
} add;
inline constexpr struct bias_t : addition<"... out, out -> ... out", bias_t> {
} bias;
/// Adds a table that does not depend on the batch.
inline constexpr struct add_rows_t : addition<"batch ..., ... -> batch ...", add_rows_t> {
} add_rows;

inline constexpr struct mul_t : op<"..., ... -> ...", mul_t> {
  template <class T>
  CFP_HOST_DEVICE static T apply(T x, T y) {
    return x * y;
  }
} mul;

/// Gaussian error linear unit, tanh form (`gelu_new`): x/2 (1 + tanh(u)) = x sigmoid(2u).
inline constexpr struct gelu_t : op<"... -> ...", gelu_t> {
  template <class T>
  CFP_HOST_DEVICE static T apply(T x) {
    const T u = T(0.7978845608028654) * (x + T(0.044715) * x * x * x);
    return x * sigmoid(u + u);
  }
} gelu;

/// Sigmoid linear unit of the gate times the other operand.
inline constexpr struct gated_silu_t : op<"..., ... -> ...", gated_silu_t> {
  template <class T>
  CFP_HOST_DEVICE static T apply(T gate, T up) {
    return gate * sigmoid(gate) * up;
  }
} gated_silu;

/// max(x, 0); what is no number stays so
inline constexpr struct relu_t : op<"... -> ...", relu_t> {
  template <class T>
  CFP_HOST_DEVICE static T apply(T x) {
    return x <= T(0) ? T(0) : x;
  }
} relu;

/// The operand times a number.
inline constexpr struct scaled_t : op<"... -> ...", scaled_t> {
  static constexpr linearity linear = linearity::all;
  static constexpr int scalars = 1;
  template <class T>
  CFP_HOST_DEVICE static T apply(T x, T by) {
    return x * by;
  }
} scaled;

/// Rows of a table: result[..., m] = table[index[...], m].
inline constexpr struct lookup_t : op<"vocabulary width, ... -> ... width; onehot vocabulary", lookup_t> {
  static constexpr bool unit = true;
  static constexpr int index_operand = 1;
  template <class T>
  CFP_HOST_DEVICE static T apply(T x) {
    return x;
  }
} lookup;

/// Its gradient: adds rows of dz into the rows the indices name.
inline constexpr struct scatter_add_t : op<"... width, ... -> vocabulary width; onehot vocabulary", scatter_add_t> {
  static constexpr bool unit = true, derived = true;
  static constexpr int index_operand = 1;
  template <class T>
  CFP_HOST_DEVICE static T apply(T x) {
    return x;
  }
} scatter_add;

}  // namespace cfp
