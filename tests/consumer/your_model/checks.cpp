// What a test suite runs: 0 where gradients and the plan that was saved are right. Nothing is printed.
#include "mixer.hpp"

// A gradient that is written by hand: it reads the result, which is there, and takes no second exponential.
struct squash_slope_t : cfp::op<"..., ... -> ...", squash_slope_t> {
  static constexpr bool derived = true;  // part of a gradient: has none of its own
  template <class T>
  CFP_HOST_DEVICE static T apply(T dy, T y) {
    return dy * y * (T(1) - y);
  }
};

inline constexpr struct squash_t : cfp::op<"... -> ...", squash_t> {
  template <class T>
  CFP_HOST_DEVICE static T apply(T x) {
    return T(1) / (T(1) + cfp::exp(-x));
  }
  static constexpr std::array<cfp::gradient_step, 1> gradient = {{
      {&cfp::info<squash_slope_t>,  // the operator,
       "..., ... -> ...",           // its rule in the factors of this one,
       {{{cfp::gradient_source::gradient, 0}, {cfp::gradient_source::result, 0}}, 2},  // two operands: dy and y
       {{0}, 1}},  // one result: the gradient of operand 0
  }};
} squash;

int main() {
  const cfp::own_kernels kernels = cfp::kernels_of<squared_relu_t>();
  const cfp::gradient_check by_hand =
      cfp::check_gradients(squash, {.mesh = "data=2", .kernels = cfp::kernels_of<squash_t, squash_slope_t>()});
  const cfp::gradient_check alone = cfp::check_gradients(squared_relu, {.kernels = kernels});
  const cfp::gradient_check whole = cfp::check_gradients(
      mixer(), {.mesh = "data=2", .plans = 1, .data = images_and_labels, .elements = 4, .kernels = kernels});
  if (!by_hand.holds() || !alone.holds() || !whole.holds()) return 1;
  cfp::session s(mixer(), {.mesh = "data=2", .kernels = kernels, .name = "mixer"});
  s.use_plan("mixer_plan.json");
  const cfp::verification v = s.verify(images_and_labels, 10);
  return v.holds() ? 0 : 1;
}
