// What a test suite runs: 0 where gradients and the plan that was saved are right. Nothing is printed.
#include "mixer.hpp"

int main() {
  const cfp::own_kernels kernels = cfp::kernels_of<squared_relu_t>();
  const cfp::gradient_check alone = cfp::check_gradients(squared_relu, {.kernels = kernels});
  const cfp::gradient_check whole = cfp::check_gradients(
      mixer(), {.mesh = "data=2", .plans = 1, .data = images_and_labels, .elements = 4, .kernels = kernels});
  if (!alone.holds() || !whole.holds()) return 1;
  cfp::session s(mixer(), {.mesh = "data=2", .kernels = kernels, .name = "mixer"});
  s.use_plan("mixer_plan.json");
  const cfp::verification v = s.verify(images_and_labels, 10);
  return v.holds() ? 0 : 1;
}
