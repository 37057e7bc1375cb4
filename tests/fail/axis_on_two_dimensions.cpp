// Must not compile: one axis splits two dimensions.
// expected-error {{a mesh axis is used twice}}
// expected-words {{axis 'data' is used twice}}
#include <cfp/core.hpp>
#include <cfp/op/catalogue.hpp>
using mesh = cfp::mesh<cfp::axis<"data", 2>, cfp::axis<"model", 4>>;
constexpr cfp::sharded<cfp::dims<"a", "b">, mesh, cfp::split<"a", "data">, cfp::split<"b", "model">> fits;
#ifndef CFP_CONTROL
constexpr cfp::sharded<cfp::dims<"a", "b">, mesh, cfp::split<"a", "data">, cfp::split<"b", "data">> tensor;
#endif
int main() {}
