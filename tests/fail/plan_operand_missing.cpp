// Must not compile: an operator of a plan lacks an operand.
// expected-error {{does not have the dimensions of its operator's rule}}
// expected-words {{sum: has 1 operands and 1 results, its rule "w, w -> w" 2 and 1}}
#include <cfp/core.hpp>
#include <cfp/op/catalogue.hpp>
using mesh = cfp::mesh<cfp::axis<"data", 2>, cfp::axis<"model", 4>>;
using a = cfp::held_as<"a", cfp::sharded<cfp::dims<"w=8">, mesh>>;
static_assert(cfp::planned<"sum", "w, w -> w", cfp::linearity::all, cfp::assigned<>, cfp::tensors<a, a>, cfp::tensors<a>>);
#ifndef CFP_CONTROL
static_assert(cfp::planned<"sum", "w, w -> w", cfp::linearity::all, cfp::assigned<>, cfp::tensors<a>, cfp::tensors<a>>);
#endif
int main() {}
