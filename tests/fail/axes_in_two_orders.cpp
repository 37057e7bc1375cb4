// Must not compile: two operands split a factor over the same axes in two orders.
// expected-error {{in the order of the mesh, or no operator knows them}}
// expected-words {{split by axes in another order than the mesh has them}}
#include <cfp/core.hpp>
#include <cfp/op/catalogue.hpp>
using mesh = cfp::mesh<cfp::axis<"data", 2>, cfp::axis<"model", 4>>;
using x = cfp::sharded<cfp::dims<"b", "in">, mesh, cfp::split<"in", "data", "model">>;
using w = cfp::sharded<cfp::dims<"in", "out">, mesh, cfp::split<"in", "data", "model">>;
constexpr cfp::result_t<cfp::linear, x, w> fits;
#ifndef CFP_CONTROL
using w2 = cfp::sharded<cfp::dims<"in", "out">, mesh, cfp::split<"in", "model", "data">>;
constexpr cfp::result_t<cfp::linear, x, w2> tensor;
#endif
int main() {}
