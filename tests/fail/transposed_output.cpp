// Must not compile: a square output projection lies transposed, its fused dimension where the sum is.
// expected-error {{two operands call one factor by different names}}
// expected-words {{linear: operand 1 'proj' (width heads d) has 'width' of size 768 where operand 0 (batch heads d) has 'heads' of size 12, and the rule}}
#include <cfp/core.hpp>
#include <cfp/op/catalogue.hpp>
using mesh = cfp::mesh<cfp::axis<"data", 2>, cfp::axis<"model", 4>>;
using x = cfp::sharded<cfp::dims<"batch", "(heads=12 d=64)">, mesh, cfp::split<"batch", "data">>;
constexpr cfp::result_t<cfp::linear, x, cfp::sharded<cfp::dims<"(heads=12 d=64)", "width=768">, mesh>> fits;
constexpr cfp::result_t<cfp::linear, x, cfp::sharded<cfp::dims<"all_heads=768", "width=768">, mesh>> fits_too;
#ifndef CFP_CONTROL
using proj = cfp::held_as<"proj", cfp::sharded<cfp::dims<"width=768", "(heads=12 d=64)">, mesh>>;
constexpr cfp::result_t<cfp::linear, x, proj> tensor;
#endif
int main() {}
