// Must not compile: an operator is given one operand too many.
// expected-error {{as many operands as its rule has}}
// expected-words {{is given 3 operands}}
#include <cfp/core.hpp>
#include <cfp/op/catalogue.hpp>
using mesh = cfp::mesh<cfp::axis<"data", 2>, cfp::axis<"model", 4>>;
using x = cfp::sharded<cfp::dims<"a", "b">, mesh>;
constexpr cfp::result_t<cfp::add, x, x> fits;
#ifndef CFP_CONTROL
constexpr cfp::result_t<cfp::add, x, x, x> tensor;
#endif
int main() {}
