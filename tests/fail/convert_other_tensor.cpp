// Must not compile: a tensor is converted into another one.
// expected-error {{cannot be converted into one another}}
// expected-words {{(b): converted to another tensor, (b) to (c)}}
#include <cfp/core.hpp>
#include <cfp/op/catalogue.hpp>
using mesh = cfp::mesh<cfp::axis<"data", 2>, cfp::axis<"model", 4>>;
using x = cfp::sharded<cfp::dims<"b">, mesh, cfp::split<"b", "data">>;
static_assert(cfp::steps<x, cfp::sharded<cfp::dims<"b">, mesh>>.size() == 1);
#ifndef CFP_CONTROL
static_assert(cfp::steps<x, cfp::sharded<cfp::dims<"c">, mesh>>.none());
#endif
int main() {}
