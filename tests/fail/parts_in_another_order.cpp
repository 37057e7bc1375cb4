// Must not compile: a fused weight stores its parts in another order than the operator reads them.
// expected-error {{a compound dimension has its parts in another order than the rule}}
// expected-words {{split_qkv: operand 0 (batch seq heads three d) has 'heads' as part 1 of a compound dimension, the rule}}
#include <cfp/core.hpp>
#include <cfp/op/attention.hpp>
using mesh = cfp::mesh<cfp::axis<"data", 2>, cfp::axis<"model", 4>>;
using x = cfp::sharded<cfp::dims<"batch", "seq", "(three=3 heads=12 d=64)">, mesh, cfp::split<"heads", "model">>;
constexpr cfp::result_at_t<cfp::split_qkv, 1, x> fits;
#ifndef CFP_CONTROL
using y = cfp::sharded<cfp::dims<"batch", "seq", "(heads=12 three=3 d=64)">, mesh, cfp::split<"heads", "model">>;
constexpr cfp::result_t<cfp::split_qkv, y> query;
constexpr cfp::result_at_t<cfp::split_qkv, 1, y> key;
#endif
int main() {}
