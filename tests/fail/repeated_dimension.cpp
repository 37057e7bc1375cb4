// Must not compile: two dimensions have one name.
// expected-error {{two dimensions of a tensor have the same name}}
// expected-words {{two dimensions are named 'batch'}}
#include <cfp/core.hpp>
#include <cfp/op/catalogue.hpp>
using mesh = cfp::mesh<cfp::axis<"data", 2>, cfp::axis<"model", 4>>;
constexpr cfp::sharded<cfp::dims<"batch", "width">, mesh> fits;
#ifndef CFP_CONTROL
constexpr cfp::sharded<cfp::dims<"batch", "batch">, mesh> tensor;
#endif
int main() {}
