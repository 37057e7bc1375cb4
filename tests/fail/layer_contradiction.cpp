// Must not compile: a layer is given partitions that contradict.
// expected-error {{two given partitions ask one operator to split two of its factors over one axis}}
// expected-words {{axis 'model' is to split 'batch' as given for x, and 'hidden' as given for up.weight}}
#include <cfp/op/catalogue.hpp>
#include <cfp/program/layer.hpp>
using mesh = cfp::mesh<cfp::axis<"data", 2>, cfp::axis<"model", 4>>;
constexpr cfp::tensor up(cfp::model& net) {
  const cfp::dimension batch{"batch", 8}, width{"width", 16}, hidden{"hidden", 64};
  return cfp::linear(net.activation("x", {batch, width}), net.weight("up.weight", {width, hidden}, {}));
}
static_assert(cfp::layer<up, mesh, cfp::given<"x", cfp::split<"batch", "data">>, cfp::given<"up.weight", cfp::split<"hidden", "model">>>::forward.size() == 0);
#ifndef CFP_CONTROL
static_assert(cfp::layer<up, mesh, cfp::given<"x", cfp::split<"batch", "model">>, cfp::given<"up.weight", cfp::split<"hidden", "model">>>::forward.size() == 0);
#endif
int main() {}
