// A product whose partitions send nothing, as the compiler says.
#include <cfp/core.hpp>

#include <cstdio>

using mesh = cfp::mesh<cfp::axis<"data", 2>, cfp::axis<"model", 4>>;
inline constexpr cfp::op<"batch in, in out -> batch out"> linear;
using x = cfp::sharded<cfp::dims<"batch", "width">, mesh, cfp::split<"batch", "data">>;
using w = cfp::sharded<cfp::dims<"width", "hidden">, mesh, cfp::split<"hidden", "model">>;
static_assert(cfp::communication_free<linear, x, w>);

int main() { std::puts("communication-free"); }
