// Must not compile: a convolution is split over height.
// expected-error {{neighbours owe a halo}}
// expected-words {{a halo of 2 positions is owed by the neighbours}}
#include <cfp/core.hpp>
#include <cfp/op/catalogue.hpp>
using mesh = cfp::mesh<cfp::axis<"data", 2>, cfp::axis<"model", 4>>;
inline constexpr cfp::op<"b c h w, o c kh kw -> b o h w; halo h kh; halo w kw"> convolution;
using k = cfp::sharded<cfp::dims<"o", "c", "kh=3", "kw=3">, mesh>;
constexpr cfp::result_t<convolution, cfp::sharded<cfp::dims<"b", "c", "h", "w">, mesh, cfp::split<"b", "data">>, k> fits;
#ifndef CFP_CONTROL
constexpr cfp::result_t<convolution, cfp::sharded<cfp::dims<"b", "c", "h", "w">, mesh, cfp::split<"h", "model">>, k> tensor;
#endif
int main() {}
