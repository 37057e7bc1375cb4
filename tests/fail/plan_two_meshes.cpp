// Must not compile: an operator of a plan has tensors on two meshes.
// expected-error {{an operator of a plan is split as it cannot be}}
// expected-words {{sum: tensor b is planned on another mesh}}
#include <cfp/core.hpp>
#include <cfp/op/catalogue.hpp>
using mesh = cfp::mesh<cfp::axis<"data", 2>, cfp::axis<"model", 4>>;
using a = cfp::held_as<"a", cfp::sharded<cfp::dims<"w=8">, mesh>>;
static_assert(cfp::planned<"sum", "w, w -> w", cfp::linearity::all, cfp::assigned<>, cfp::tensors<a, a>, cfp::tensors<a>>);
#ifndef CFP_CONTROL
using b = cfp::held_as<"b", cfp::sharded<cfp::dims<"w=8">, cfp::mesh<cfp::axis<"data", 4>>>>;
static_assert(cfp::planned<"sum", "w, w -> w", cfp::linearity::all, cfp::assigned<>, cfp::tensors<a, b>, cfp::tensors<a>>);
#endif
int main() {}
