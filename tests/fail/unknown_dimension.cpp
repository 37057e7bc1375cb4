// Must not compile: a partition splits a dimension that the tensor does not have.
// expected-error {{a partition splits a dimension that the tensor does not have}}
// expected-words {{the tensor has no dimension 'wdth'; its dimensions are 'batch' and 'width'}}
#include <cfp/core.hpp>
#include <cfp/op/catalogue.hpp>
using mesh = cfp::mesh<cfp::axis<"data", 2>, cfp::axis<"model", 4>>;
using right = cfp::sharded<cfp::dims<"batch", "width">, mesh, cfp::split<"width", "data">>;
constexpr right fits;
#ifndef CFP_CONTROL
using wrong = cfp::sharded<cfp::dims<"batch", "width">, mesh, cfp::split<"wdth", "data">>;
constexpr wrong tensor;
#endif
int main() {}
