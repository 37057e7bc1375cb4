// Must not compile: one wrong axis, and everything that is asked afterwards is silent.
// expected-error {{a partition names an axis that the mesh does not have}}
// expected-words {{the mesh has no axis 'tensor'; its axes are 'data' and 'model'}}
#include <cfp/core.hpp>
#include <cfp/op/catalogue.hpp>
using mesh = cfp::mesh<cfp::axis<"data", 2>, cfp::axis<"model", 4>>;
using x = cfp::sharded<cfp::dims<"batch=8", "width=16">, mesh, cfp::split<"batch", "data">>;
template <class W>
struct mlp {
  using up = cfp::held_as<"up", W>;
  using h = cfp::result_t<cfp::gelu, cfp::result_t<cfp::linear, x, up>>;
  using down = cfp::sharded<cfp::dims<"hidden=32", "width=16">, mesh, cfp::split<"hidden", "model">>;
  using y = cfp::held_as<"y", cfp::result_t<cfp::linear, h, down>>;
  static_assert(cfp::communication_free<cfp::linear, h, down> && cfp::why<cfp::linear, h, down>.empty());
  static_assert(up::local()[1] == 8 && 2 * up::local()[1] > 15 && h::dims_type::value.rank() == 2 && h::sized);
  static_assert(cfp::steps<y>.size() == 1 && !cfp::steps<y>.none() && cfp::steps<y>[0].axes[0] == "model");
  static_assert(cfp::steps<y>.bytes() == 2 * 3 * 4 * 16 * 4 / 4 && cfp::steps<y>.count(cfp::step_kind::all_reduce) == 1);
  static_assert(cfp::owes<y, cfp::complete_t<y>, cfp::all_reduce<"model">>);
  using adam = cfp::flat_buffer<"adam", "data", up>;
  static_assert(adam::elements == 128 && adam::template offset<up> == 0 && adam::template takes<up, cfp::sharded<cfp::dims<"width=16", "hidden=32">, mesh,
                                                                                             cfp::split<"hidden", "model">, cfp::partial<"data">>>);
  static_assert(cfp::owes<cfp::share_t<adam>, cfp::whole_t<adam>, cfp::all_gather<"flat", "data">>);
  float shard[static_cast<std::size_t>(up::local()[1])];
};
template struct mlp<cfp::sharded<cfp::dims<"width=16", "hidden=32">, mesh, cfp::split<"hidden", "model">>>;
#ifndef CFP_CONTROL
template struct mlp<cfp::sharded<cfp::dims<"width=16", "hidden=32">, mesh, cfp::split<"hidden", "tensor">>>;
#endif
int main() {}
