// Must not compile: the function of a layer multiplies matrices that do not fit.
// expected-error {{a model gives an operator shapes or operands that do not fit its rule}}
// expected-words {{linear: operand 1 'down.weight' (hidden width) has 'hidden' of size 60, operand 0 'gelu' (batch hidden) has 'hidden' of size 64}}
#include <cfp/op/catalogue.hpp>
#include <cfp/program/layer.hpp>
using mesh = cfp::mesh<cfp::axis<"data", 2>, cfp::axis<"model", 4>>;
template <long Width>
constexpr cfp::tensor mlp(cfp::model& net) {
  const cfp::dimension batch{"batch", 8}, width{"width", 16}, hidden{"hidden", 64};
  const cfp::tensor up = cfp::linear(net.activation("x", {batch, width}), net.weight("up.weight", {width, hidden}, {}));
  const cfp::tensor down = cfp::linear(cfp::gelu(up), net.weight("down.weight", {{"hidden", Width}, width}, {}));
  return cfp::gelu(down);
}
static_assert(cfp::layer<mlp<64>, mesh, cfp::given<"x", cfp::split<"batch", "data">>>::forward.size() == 0);
#ifndef CFP_CONTROL
static_assert(cfp::layer<mlp<60>, mesh, cfp::given<"x", cfp::split<"batch", "data">>>::forward.size() == 0);
#endif
int main() {}
