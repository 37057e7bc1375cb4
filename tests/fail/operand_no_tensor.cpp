// Must not compile: an operator is asked about a type that is no partitioned tensor.
// expected-error {{an operator is asked about types of partitioned tensors, cfp::sharded<cfp::dims<...>, mesh, ...>, one per operand}}
// expected-words {{linear: operand 1 is no partitioned tensor}}
#include <cfp/core.hpp>
#include <cfp/op/catalogue.hpp>
using mesh = cfp::mesh<cfp::axis<"data", 2>>;
using x = cfp::sharded<cfp::dims<"batch", "in">, mesh>;
using w = cfp::sharded<cfp::dims<"in", "out">, mesh>;
static_assert(cfp::communication_free<cfp::linear, x, w>);
#ifndef CFP_CONTROL
static_assert(cfp::communication_free<cfp::linear, x, float>);
#endif
int main() {}
