// Must not compile: a collective is to change the type of the elements.
// expected-error {{two partitions of different tensors cannot be converted into one another}}
// expected-words {{x: converted to another type of elements, 4 bytes to 2; cast before or after}}
#include <cfp/core.hpp>
using mesh = cfp::mesh<cfp::axis<"data", 2>, cfp::axis<"model", 4>>;
using parts = cfp::held_as<"x", cfp::sharded<cfp::dims<"width=8">, mesh, cfp::partial<"model">>>;
using whole = cfp::held_as<"x", cfp::sharded<cfp::dims<"width=8">, mesh>>;
static_assert(cfp::steps<parts, whole>.size() == 1);
#ifndef CFP_CONTROL
using narrow = cfp::held_as<"x", cfp::sharded<cfp::dims<"width=8">, mesh>, cfp::element_of<2>>;
static_assert(cfp::steps<parts, narrow>.size() == 1);
#endif
int main() {}
