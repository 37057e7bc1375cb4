// Must not compile: a partial sum is added to a full value.
// expected-error {{a partial sum reaches an operator that is not linear in it}}
// expected-words {{add: operand 1 (batch) is a partial sum over 'model', and the operator is linear only if all operands are partial alike}}
#include <cfp/core.hpp>
#include <cfp/op/catalogue.hpp>
using mesh = cfp::mesh<cfp::axis<"data", 2>, cfp::axis<"model", 4>>;
using full = cfp::sharded<cfp::dims<"batch">, mesh>;
using part = cfp::sharded<cfp::dims<"batch">, mesh, cfp::partial<"model">>;
constexpr cfp::result_t<cfp::add, part, part> fits;
#ifndef CFP_CONTROL
constexpr cfp::result_t<cfp::add, full, part> tensor;
#endif
int main() {}
