// Must not compile: operands live on two meshes.
// expected-error {{operands of one operator are partitioned over one mesh}}
// expected-words {{add: operand 0 (b) is partitioned over the mesh (data=2 model=4), operand 1 (b) over (data=4)}}
#include <cfp/core.hpp>
#include <cfp/op/catalogue.hpp>
using mesh = cfp::mesh<cfp::axis<"data", 2>, cfp::axis<"model", 4>>;
using x = cfp::sharded<cfp::dims<"b">, mesh>;
constexpr cfp::result_t<cfp::add, x, x> fits;
#ifndef CFP_CONTROL
constexpr cfp::result_t<cfp::add, x, cfp::sharded<cfp::dims<"b">, cfp::mesh<cfp::axis<"data", 4>>>> tensor;
#endif
int main() {}
