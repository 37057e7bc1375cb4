// Must not compile: a partition names an axis that the mesh does not have.
// expected-error {{a partition names an axis that the mesh does not have}}
// expected-words {{the mesh has no axis 'modle'; its axes are 'data' and 'model'}}
#include <cfp/core.hpp>
#include <cfp/op/catalogue.hpp>
using mesh = cfp::mesh<cfp::axis<"data", 2>, cfp::axis<"model", 4>>;
constexpr cfp::sharded<cfp::dims<"width">, mesh, cfp::split<"width", "model">> fits;
#ifndef CFP_CONTROL
constexpr cfp::sharded<cfp::dims<"width">, mesh, cfp::split<"width", "modle">> tensor;
#endif
int main() {}
