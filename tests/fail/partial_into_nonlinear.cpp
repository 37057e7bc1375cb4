// Must not compile: a row-first split before gelu: a partial sum reaches an operator that is not linear.
// expected-error {{a partial sum reaches an operator that is not linear in it}}
// expected-words {{gelu: operand 0 (batch hidden) is a partial sum over 'model', and the operator is not linear; mend: reduce_scatter operand 0 into}}
#include <cfp/core.hpp>
#include <cfp/op/catalogue.hpp>
using mesh = cfp::mesh<cfp::axis<"data", 2>, cfp::axis<"model", 4>>;
using x = cfp::sharded<cfp::dims<"batch", "width">, mesh, cfp::split<"width", "model">>;
using w = cfp::sharded<cfp::dims<"width", "hidden">, mesh, cfp::split<"width", "model">>;
using h = cfp::result_t<cfp::linear, x, w>;
constexpr cfp::result_t<cfp::gelu, cfp::complete_t<h>> fits;
#ifndef CFP_CONTROL
constexpr cfp::result_t<cfp::gelu, h> tensor;
#endif
int main() {}
