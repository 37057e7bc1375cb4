// Must not compile: an operand has more dimensions than its rule.
// expected-error {{an operand has as many dimensions as its rule says}}
// expected-words {{operand 1 (a b c) has 3 dimensions}}
#include <cfp/core.hpp>
#include <cfp/op/catalogue.hpp>
using mesh = cfp::mesh<cfp::axis<"data", 2>, cfp::axis<"model", 4>>;
using x = cfp::sharded<cfp::dims<"a", "b">, mesh>;
using y = cfp::result_t<cfp::linear, x, cfp::sharded<cfp::dims<"b", "c">, mesh>>;
constexpr y fits;
#ifndef CFP_CONTROL
using w = cfp::sharded<cfp::dims<"a", "b", "c">, mesh>;
using z = cfp::result_t<cfp::linear, x, w>;
constexpr z tensor;
#endif
int main() {}
