// Must not compile: a compound dimension has other parts than the rule.
// expected-error {{a compound dimension and its rule do not have the same parts}}
// expected-words {{has a dimension of 2 parts where the rule or another operand has 3}}
#include <cfp/core.hpp>
#include <cfp/op/catalogue.hpp>
#include <cfp/op/attention.hpp>
using mesh = cfp::mesh<cfp::axis<"data", 2>, cfp::axis<"model", 4>>;
constexpr cfp::result_t<cfp::split_qkv, cfp::sharded<cfp::dims<"b", "s", "(three h d)">, mesh>> fits;
#ifndef CFP_CONTROL
constexpr cfp::result_t<cfp::split_qkv, cfp::sharded<cfp::dims<"b", "s", "(three d)">, mesh>> tensor;
#endif
int main() {}
