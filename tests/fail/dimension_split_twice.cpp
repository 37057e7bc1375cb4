// Must not compile: one dimension is split twice.
// expected-error {{a dimension is split twice}}
// expected-words {{dimension 'a' is split twice}}
#include <cfp/core.hpp>
#include <cfp/op/catalogue.hpp>
using mesh = cfp::mesh<cfp::axis<"data", 2>, cfp::axis<"model", 4>>;
constexpr cfp::sharded<cfp::dims<"a">, mesh, cfp::split<"a", "data", "model">> fits;
#ifndef CFP_CONTROL
constexpr cfp::sharded<cfp::dims<"a">, mesh, cfp::split<"a", "data">, cfp::split<"a", "model">> tensor;
#endif
int main() {}
