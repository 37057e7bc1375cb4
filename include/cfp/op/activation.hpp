// Functions of single elements that families of models differ in, beside those of the catalogue's beginning.
#pragma once

#include <cfp/op/catalogue.hpp>

namespace cfp::inline v0_1 {

/// Gaussian error linear unit as it is defined: x times the normal distribution's share below x.
inline constexpr struct gelu_exact_t : op<"... -> ...", gelu_exact_t> {
  template <class T>
  CFP_HOST_DEVICE static T apply(T x) {
    return T(0.5) * x * (T(1) + erf(x * T(0.7071067811865476)));
  }
} gelu_exact;

/// Gaussian error linear unit, tanh form, of the gate times the other operand.
inline constexpr struct gated_gelu_t : op<"..., ... -> ...", gated_gelu_t> {
  template <class T>
  CFP_HOST_DEVICE static T apply(T gate, T up) {
    return gelu_t::apply(gate) * up;
  }
} gated_gelu;

/// cap tanh(x / cap): about x where that is small, never beyond the cap. Scalar: the cap.
inline constexpr struct soft_cap_t : op<"... -> ...", soft_cap_t> {
  static constexpr int scalars = 1;
  template <class T>
  CFP_HOST_DEVICE static T apply(T x, T cap) {
    return cap * tanh(x / cap);
  }
} soft_cap;

/// x, or what lies nearest to it from -limit to limit. Scalar: the limit.
inline constexpr struct clamped_t : op<"... -> ...", clamped_t> {
  static constexpr int scalars = 1;
  template <class T>
  CFP_HOST_DEVICE static T apply(T x, T limit) {
    return x < -limit ? -limit : x > limit ? limit : x;
  }
} clamped;

/// 1 / (1 + exp(-x)).
inline constexpr struct logistic_t : op<"... -> ...", logistic_t> {
  template <class T>
  CFP_HOST_DEVICE static T apply(T x) {
    return sigmoid(x);
  }
} logistic;

/// A row times the logistic function of its gate, a dimension of size 1.
inline constexpr struct gated_rows_t : op<"... width, ... gate -> ... width", gated_rows_t> {
  template <class T>
  CFP_HOST_DEVICE static T apply(T x, T gate) {
    return x * sigmoid(gate);
  }
} gated_rows;

/// Rows of a sequence but for the first one, in whose place a vector stands.
inline constexpr struct first_replaced_t : op<"b s width, width -> b s width; index s", first_replaced_t> {
  template <class T>
  CFP_HOST_DEVICE static T apply(T x, T first, long s) {
    return s == 0 ? first : x;
  }
} first_replaced;

/// The first row of a sequence.
inline constexpr struct first_row_t : op<"b s width -> b width; index s", first_row_t> {
  template <class T>
  CFP_HOST_DEVICE static T apply(T x, long s) {
    return s == 0 ? x : T(0);
  }
} first_row;

/// Patches of images, a channel's pixels each, times a weight for each.
inline constexpr struct patch_dense_t
    : contraction<"b s channel row column, out channel row column -> b s out", patch_dense_t> {
} patch_dense;

/// 1 + x: norms of some models store their weights less one.
inline constexpr struct plus_one_t : op<"... -> ...", plus_one_t> {
  template <class T>
  CFP_HOST_DEVICE static T apply(T x) {
    return T(1) + x;
  }
} plus_one;

}  // namespace cfp
