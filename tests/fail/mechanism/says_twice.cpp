// Two mistakes: what is expected is said, and something else besides.
// expected-error {{a partition names an axis that the mesh does not have}}
// expected-words {{the mesh has no axis 'tensor'; its axes are 'data'}}
#include <cfp/core.hpp>
using mesh = cfp::mesh<cfp::axis<"data", 2>>;
constexpr cfp::sharded<cfp::dims<"width">, mesh, cfp::split<"width", "tensor">> one;
constexpr cfp::sharded<cfp::dims<"width">, mesh, cfp::split<"depth", "data">> other;
int main() {}
