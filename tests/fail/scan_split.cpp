// Must not compile: a running sum is split along its run.
// expected-error {{every device owes the next a carry}}
// expected-words {{which is scanned: a carry from each device to the next is owed}}
#include <cfp/core.hpp>
#include <cfp/op/catalogue.hpp>
using mesh = cfp::mesh<cfp::axis<"data", 2>, cfp::axis<"model", 4>>;
inline constexpr struct running_sum_t : cfp::op<"b s -> b s; scan s", running_sum_t> {} running_sum;
constexpr cfp::result_t<running_sum, cfp::sharded<cfp::dims<"b", "s">, mesh, cfp::split<"b", "data">>> fits;
#ifndef CFP_CONTROL
constexpr cfp::result_t<running_sum, cfp::sharded<cfp::dims<"b", "s">, mesh, cfp::split<"s", "data">>> tensor;
#endif
int main() {}
