// Functions of single elements that graphs from files are written in, beside those of the catalogue: what compilers
// and exporters take a model apart into. They have kernels where a program asks for them: `elementary_kernels`
// (backend/host/elementary_kernels.hpp).
#pragma once

#include <cfp/op/all.hpp>

#include <array>

namespace cfp::inline v0_1 {

namespace elementary {

struct subtract_t : op<"..., ... -> ...", subtract_t> {
  static constexpr linearity linear = linearity::all;
  template <class T>
  CFP_HOST_DEVICE static T apply(T x, T y) {
    return x - y;
  }
};
struct divide_t : op<"..., ... -> ...", divide_t> {
  template <class T>
  CFP_HOST_DEVICE static T apply(T x, T y) {
    return x / y;
  }
};
/// The operand and a number more.
struct shifted_t : op<"... -> ...", shifted_t> {
  static constexpr int scalars = 1;
  template <class T>
  CFP_HOST_DEVICE static T apply(T x, T by) {
    return x + by;
  }
};
/// A number over the operand.
struct over_t : op<"... -> ...", over_t> {
  static constexpr int scalars = 1;
  template <class T>
  CFP_HOST_DEVICE static T apply(T x, T by) {
    return by / x;
  }
};
struct exponential_t : op<"... -> ...", exponential_t> {
  template <class T>
  CFP_HOST_DEVICE static T apply(T x) {
    return exp(x);
  }
};
struct logarithm_t : op<"... -> ...", logarithm_t> {
  template <class T>
  CFP_HOST_DEVICE static T apply(T x) {
    return log(x);
  }
};
struct root_t : op<"... -> ...", root_t> {
  template <class T>
  CFP_HOST_DEVICE static T apply(T x) {
    return sqrt(x);
  }
};
struct over_root_t : op<"... -> ...", over_root_t> {
  template <class T>
  CFP_HOST_DEVICE static T apply(T x) {
    return T(1) / sqrt(x);
  }
};
struct square_t : op<"... -> ...", square_t> {
  template <class T>
  CFP_HOST_DEVICE static T apply(T x) {
    return x * x;
  }
};
struct cube_t : op<"... -> ...", cube_t> {
  template <class T>
  CFP_HOST_DEVICE static T apply(T x) {
    return x * x * x;
  }
};
struct tangent_t : op<"... -> ...", tangent_t> {
  template <class T>
  CFP_HOST_DEVICE static T apply(T x) {
    return tanh(x);
  }
};
struct error_t : op<"... -> ...", error_t> {
  template <class T>
  CFP_HOST_DEVICE static T apply(T x) {
    return erf(x);
  }
};
struct sine_t : op<"... -> ...", sine_t> {
  template <class T>
  CFP_HOST_DEVICE static T apply(T x) {
    return sin(x);
  }
};
struct cosine_t : op<"... -> ...", cosine_t> {
  template <class T>
  CFP_HOST_DEVICE static T apply(T x) {
    return cos(x);
  }
};
/// The larger one.
struct larger_t : op<"..., ... -> ...", larger_t> {
  template <class T>
  CFP_HOST_DEVICE static T apply(T x, T y) {
    return x < y ? y : x;
  }
};
struct smaller_t : op<"..., ... -> ...", smaller_t> {
  template <class T>
  CFP_HOST_DEVICE static T apply(T x, T y) {
    return y < x ? y : x;
  }
};
/// The second operand where the first, a truth value, is not 0, else the third.
struct chosen_t : op<"..., ..., ... -> ...", chosen_t> {
  template <class T>
  CFP_HOST_DEVICE static T apply(T which, T x, T y) {
    return which > T(0) ? x : y;
  }
};
/// What a maximum or a minimum over a row passes to those of the row that are as large: `dz` where x is y.
struct of_extreme_t : op<"..., ..., ... -> ...", of_extreme_t> {
  static constexpr bool derived = true;
  template <class T>
  CFP_HOST_DEVICE static T apply(T dz, T x, T y) {
    return x < y || y < x ? T(0) : dz;
  }
};
/// The largest of a row, which stays whole: parts of a maximum have no gradient.
struct largest_t : op<"... k -> ...; whole k; max k", largest_t> {
  template <class T>
  CFP_HOST_DEVICE static T apply(T x) {
    return x;
  }
  static constexpr std::array<gradient_step, 1> gradient = {{
      {&info<of_extreme_t>,
       "..., ... k, ... -> ... k",
       {{{gradient_source::gradient, 0}, {operand, 0}, {result, 0}}, 3},
       {{0}, 1}},
  }};
};
/// The smallest one.
struct smallest_t : op<"... k -> ...; whole k; min k", smallest_t> {
  template <class T>
  CFP_HOST_DEVICE static T apply(T x) {
    return x;
  }
  static constexpr std::array<gradient_step, 1> gradient = largest_t::gradient;
};

/// All of them, as `kernels_of` takes them.
using all =
    op_list<subtract_t, divide_t, shifted_t, over_t, exponential_t, logarithm_t, root_t, over_root_t, square_t, cube_t,
            tangent_t, error_t, sine_t, cosine_t, larger_t, smaller_t, chosen_t, of_extreme_t, largest_t, smallest_t>;

}  // namespace elementary

}  // namespace cfp
