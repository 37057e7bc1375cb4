// Must not compile: a dimension is renamed that the tensor does not have. What follows is silent.
// expected-error {{a partition splits a dimension that the tensor does not have}}
// expected-words {{w: the tensor has no dimension 'rows' to rename; its dimensions are 'in' and 'out'}}
#include <cfp/core.hpp>
#include <cfp/op/catalogue.hpp>
using mesh = cfp::mesh<cfp::axis<"data", 2>, cfp::axis<"model", 4>>;
using x = cfp::sharded<cfp::dims<"batch", "width=8">, mesh, cfp::split<"batch", "data">>;
using w = cfp::held_as<"w", cfp::sharded<cfp::dims<"in=8", "out=8">, mesh>>;
using y = cfp::result_t<cfp::linear, x, cfp::renamed<w, "in", "width">>;
static_assert(y::local()[1] == 8);
#ifndef CFP_CONTROL
using z = cfp::result_t<cfp::linear, x, cfp::renamed<w, "rows", "width">>;
static_assert(z::local()[1] == 8 && cfp::communication_free<cfp::gelu, z> && cfp::steps<z>.none() && cfp::owes<z, z>);
#endif
int main() {}
