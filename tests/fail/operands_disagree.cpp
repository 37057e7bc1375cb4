// Must not compile: operands hold a common factor differently.
// expected-error {{two operands hold a common factor differently along a mesh axis}}
// expected-words {{linear: operand 1 (width hidden) splits 'width' over 'model', but operand 0 (batch width) holds all of it; mend: split 'width' of operand 0 over 'model', which sends nothing (the result is then a partial sum)}}
#include <cfp/core.hpp>
#include <cfp/op/catalogue.hpp>
using mesh = cfp::mesh<cfp::axis<"data", 2>, cfp::axis<"model", 4>>;
using x = cfp::sharded<cfp::dims<"batch", "width">, mesh, cfp::split<"batch", "data">>;
using w = cfp::sharded<cfp::dims<"width", "hidden">, mesh, cfp::split<"hidden", "model">>;
constexpr cfp::result_t<cfp::linear, x, w> fits;
#ifndef CFP_CONTROL
using w2 = cfp::sharded<cfp::dims<"width", "hidden">, mesh, cfp::split<"width", "model">>;
constexpr cfp::result_t<cfp::linear, x, w2> tensor;
#endif
int main() {}
