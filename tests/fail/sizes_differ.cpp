// Must not compile: one factor has two sizes.
// expected-error {{one factor has two sizes}}
// expected-words {{operand 1 (width hidden) has 'width' of size 9, operand 0 (batch width) has 'width' of size 8}}
#include <cfp/core.hpp>
#include <cfp/op/catalogue.hpp>
using mesh = cfp::mesh<cfp::axis<"data", 2>, cfp::axis<"model", 4>>;
using x = cfp::sharded<cfp::dims<"batch=4", "width=8">, mesh>;
constexpr cfp::result_t<cfp::linear, x, cfp::sharded<cfp::dims<"width=8", "hidden">, mesh>> fits;
#ifndef CFP_CONTROL
constexpr cfp::result_t<cfp::linear, x, cfp::sharded<cfp::dims<"width=9", "hidden">, mesh>> tensor;
#endif
int main() {}
