// Must not compile: two dimensions of the result would bear one name.
// expected-error {{two dimensions of a tensor have the same name}}
// expected-words {{two dimensions of the result would be named 'b'; rename it in one of the operands}}
#include <cfp/core.hpp>
#include <cfp/op/op.hpp>
using mesh = cfp::mesh<cfp::axis<"data", 2>>;
inline constexpr cfp::op<"a k, k b -> a b"> multiply;
using x = cfp::sharded<cfp::dims<"b", "width">, mesh, cfp::split<"b", "data">>;
static_assert(cfp::communication_free<multiply, x, cfp::sharded<cfp::dims<"width", "b">, mesh>>);
constexpr cfp::result_t<multiply, x, cfp::sharded<cfp::dims<"width", "out">, mesh>> fits;
#ifndef CFP_CONTROL
constexpr cfp::result_t<multiply, x, cfp::sharded<cfp::dims<"width", "b">, mesh>> tensor;
#endif
int main() {}
