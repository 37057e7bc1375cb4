// Must not compile: a dimension is named like a word of partitions.
// expected-error {{the column is where reading stopped}}
// expected-words {{are words of partitions, no names, column 1 of "partial"}}
#include <cfp/core.hpp>
#include <cfp/op/catalogue.hpp>
using mesh = cfp::mesh<cfp::axis<"data", 2>, cfp::axis<"model", 4>>;
constexpr cfp::sharded<cfp::dims<"part">, mesh> fits;
#ifndef CFP_CONTROL
constexpr cfp::sharded<cfp::dims<"partial">, mesh> tensor;
#endif
int main() {}
