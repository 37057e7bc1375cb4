// Must not compile: a size does not divide.
// expected-error {{a multiple of the devices that split it}}
// expected-words {{dimension 'width' has 10 elements, which 4 devices (model=4) do not divide; take a multiple of 4}}
#include <cfp/core.hpp>
#include <cfp/op/catalogue.hpp>
using mesh = cfp::mesh<cfp::axis<"data", 2>, cfp::axis<"model", 4>>;
constexpr cfp::sharded<cfp::dims<"width=12">, mesh, cfp::split<"width", "model">> fits;
#ifndef CFP_CONTROL
constexpr cfp::sharded<cfp::dims<"width=10">, mesh, cfp::split<"width", "model">> tensor;
#endif
int main() {}
