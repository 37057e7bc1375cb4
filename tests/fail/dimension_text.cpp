// Must not compile: the text of a dimension cannot be read.
// expected-error {{the column is where reading stopped}}
// expected-words {{expected a size of at least 1 after '=', column 7 of "width=x"}}
#include <cfp/core.hpp>
#include <cfp/op/catalogue.hpp>
using mesh = cfp::mesh<cfp::axis<"data", 2>, cfp::axis<"model", 4>>;
constexpr cfp::sharded<cfp::dims<"width=8">, mesh> fits;
#ifndef CFP_CONTROL
constexpr cfp::sharded<cfp::dims<"width=x">, mesh> tensor;
#endif
int main() {}
