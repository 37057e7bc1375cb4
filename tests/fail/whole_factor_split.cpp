// Must not compile: a factor that must stay whole is split.
// expected-error {{a factor that must stay whole is split}}
// expected-words {{splits 'qkv' over 'model', but 'three' must stay whole and is its major part; name the parts of the dimension}}
#include <cfp/core.hpp>
#include <cfp/op/catalogue.hpp>
#include <cfp/op/attention.hpp>
using mesh = cfp::mesh<cfp::axis<"data", 2>, cfp::axis<"model", 4>>;
using x = cfp::sharded<cfp::dims<"b", "s", "(three heads d)">, mesh, cfp::split<"heads", "model">>;
constexpr cfp::result_t<cfp::split_qkv, x> fits;
#ifndef CFP_CONTROL
using x2 = cfp::sharded<cfp::dims<"b", "s", "qkv">, mesh, cfp::split<"qkv", "model">>;
constexpr cfp::result_t<cfp::split_qkv, x2> tensor;
#endif
int main() {}
