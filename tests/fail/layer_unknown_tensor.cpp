// Must not compile: a partition is given for a tensor the layer does not have.
// expected-error {{a partition is given for a tensor that the layer does not have}}
// expected-words {{the layer has no tensor 'up.wieght'; it has 'x', 'up.weight'}}
#include <cfp/op/catalogue.hpp>
#include <cfp/program/layer.hpp>
using mesh = cfp::mesh<cfp::axis<"data", 2>, cfp::axis<"model", 4>>;
constexpr cfp::tensor up(cfp::model& net) {
  const cfp::dimension batch{"batch", 8}, width{"width", 16}, hidden{"hidden", 64};
  return cfp::linear(net.activation("x", {batch, width}), net.weight("up.weight", {width, hidden}, {}));
}
static_assert(cfp::layer<up, mesh, cfp::given<"x", cfp::split<"batch", "data">>, cfp::given<"up.weight", cfp::split<"hidden", "model">>>::forward.size() == 0);
#ifndef CFP_CONTROL
static_assert(cfp::layer<up, mesh, cfp::given<"up.wieght", cfp::split<"hidden", "model">>>::forward.size() == 0);
#endif
int main() {}
