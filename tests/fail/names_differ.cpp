// Must not compile: a square weight that lies transposed.
// expected-error {{two operands call one factor by different names}}
// expected-words {{linear: operand 1 'w' (out width) has 'out' of size 8 where operand 0 (batch width) has 'width' of size 8, and the rule "... in, in out -> ... out" has one 'in': a transposed or another tensor; if the two are the same, say so: cfp::renamed<operand 1, "out", "width">}}
#include <cfp/core.hpp>
#include <cfp/op/catalogue.hpp>
using mesh = cfp::mesh<cfp::axis<"data", 2>, cfp::axis<"model", 4>>;
using x = cfp::sharded<cfp::dims<"batch", "width=8">, mesh, cfp::split<"batch", "data">>;
using w = cfp::held_as<"w", cfp::sharded<cfp::dims<"out=8", "width=8">, mesh>>;
static_assert(cfp::communication_free<cfp::dense, x, w>);
constexpr cfp::result_t<cfp::linear, x, cfp::sharded<cfp::dims<"width=8", "out=8">, mesh>> fits;
#ifndef CFP_CONTROL
constexpr cfp::result_t<cfp::linear, x, w> tensor;
#endif
int main() {}
