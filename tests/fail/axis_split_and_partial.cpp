// Must not compile: one axis splits a dimension and holds parts of a sum.
// expected-error {{a mesh axis is used twice}}
// expected-words {{axis 'data' is used twice}}
#include <cfp/core.hpp>
#include <cfp/op/catalogue.hpp>
using mesh = cfp::mesh<cfp::axis<"data", 2>, cfp::axis<"model", 4>>;
constexpr cfp::sharded<cfp::dims<"a">, mesh, cfp::split<"a", "data">, cfp::partial<"model">> fits;
#ifndef CFP_CONTROL
constexpr cfp::sharded<cfp::dims<"a">, mesh, cfp::split<"a", "data">, cfp::partial<"data">> tensor;
#endif
int main() {}
