// Must not compile: more operands than any operator has.
// expected-error {{an operator takes as many operands as its rule has}}
// expected-words {{linear: is given 9 operands, its rule }}
#include <cfp/core.hpp>
#include <cfp/op/catalogue.hpp>
using mesh = cfp::mesh<cfp::axis<"data", 2>>;
using x = cfp::sharded<cfp::dims<"batch", "in">, mesh>;
using w = cfp::sharded<cfp::dims<"in", "out">, mesh>;
constexpr cfp::result_t<cfp::linear, x, w> fits;
#ifndef CFP_CONTROL
static_assert(!cfp::communication_free<cfp::linear, x, w, w, w, w, w, w, w, w>);
constexpr cfp::result_t<cfp::linear, x, w, w, w, w, w, w, w, w> tensor;
#endif
int main() {}
