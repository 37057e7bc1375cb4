// Named tensors, steps between partitions, and flat buffers, as somebody's own program writes them.
#include <cfp/core.hpp>

#include <type_traits>

using grid = cfp::mesh<cfp::axis<"data", 2>, cfp::axis<"expert", 2>, cfp::axis<"model", 4>>;

// Small tensors take few calls, large ones send little.
using norm_grad =
    cfp::held_as<"norm.grad", cfp::sharded<cfp::dims<"width=768">, grid, cfp::partial<"data">, cfp::partial<"model">>>;
static_assert(cfp::steps<norm_grad>.size() == 1 && cfp::steps<norm_grad>[0].axes.size() == 2);
static_assert(cfp::steps<norm_grad>.bytes() == 2 * 7 * 768 * 4 / 8);
static_assert(cfp::steps<norm_grad>[0].devices == 8 && cfp::steps<norm_grad>[0].color(grid::shape, 5) == 1);
static_assert(cfp::owes<norm_grad, cfp::complete_t<norm_grad>, cfp::all_reduce<"data", "model">>);
static_assert(cfp::owes<norm_grad, cfp::complete_t<norm_grad>, cfp::all_reduce<"model">, cfp::all_reduce<"data">>);

// As the header of a plan writes it.
static_assert(cfp::reshard<norm_grad, cfp::complete_t<norm_grad>, "all_reduce", "data", "model">::sent.calls[0] == 1);
static_assert(cfp::reshard<norm_grad, cfp::complete_t<norm_grad>, "all_reduce", "data", "model">::sent.bytes[0] ==
              2 * 7 * 768 * 4 / 8);

// Tokens to experts and back: found among four dimensions and three axes before a compiler stops to search.
using answers = cfp::sharded<cfp::dims<"experts=8", "batch=16", "slot=640", "width=4096">, grid,
                             cfp::split<"experts", "expert">, cfp::split<"batch", "data">, cfp::partial<"model">>;
using returned = cfp::sharded<cfp::dims<"experts=8", "batch=16", "slot=640", "width=4096">, grid,
                              cfp::split<"batch", "data", "expert">>;
static_assert(cfp::owes<answers, returned, cfp::all_reduce<"model">, cfp::all_to_all<"experts", "batch", "expert">>);
static_assert(cfp::steps<answers, returned>.size() == 3);  // scattered first, less is sent
static_assert(cfp::steps<answers, returned>.count(cfp::step_kind::all_to_all) == 1);

// A maximum is no sum.
inline constexpr struct largest_t : cfp::op<"b s v -> b s; max v", largest_t> {
} largest;
using logits = cfp::sharded<cfp::dims<"b", "s", "v">, grid, cfp::split<"v", "model">>;
using maxima = cfp::result_t<largest, logits>;
static_assert(cfp::owes<maxima, cfp::complete_t<maxima>, cfp::all_reduce_max<"model">>);
static_assert(cfp::steps<maxima>[0].combine == cfp::reduction::max);

// Layers by number; bfloat16 weights, float32 in the optimizer.
using bf16 = cfp::element_of<2>;
using up =
    cfp::held_as<"up", cfp::sharded<cfp::dims<"width=8", "hidden=12">, grid, cfp::split<"hidden", "model">>, bf16>;
using ln = cfp::held_as<"ln", cfp::sharded<cfp::dims<"width=9">, grid>, bf16>;
using weights = cfp::flat_buffer<"weights", "data", cfp::numbered<0, up>, cfp::numbered<0, ln>, cfp::numbered<1, up>,
                                 cfp::numbered<1, ln>>;
static_assert(weights::elements == 2 * (24 + 9) && weights::padded == 66 && weights::owned == 33);
static_assert(weights::offset<cfp::numbered<1, ln>> == 24 + 9 + 24 && weights::offset<ln> == -1);
static_assert(cfp::numbered<1, up>::name == "up.1" &&
              cfp::steps<cfp::parts_t<weights>, cfp::share_t<weights>>.bytes() == 66);
static_assert(
    weights::takes<cfp::numbered<1, ln>,
                   cfp::held_as<"ln.grad", cfp::sharded<cfp::dims<"width=9">, grid, cfp::partial<"data">>, bf16>>);
static_assert(cfp::owes<cfp::parts_t<weights>, cfp::share_t<weights>, cfp::reduce_scatter<"flat", "data">>);
static_assert([] {
  long elements = 0;
  weights::each([&]<class Weight>() { elements += cfp::elements(Weight::local()); });
  return elements;
}() == weights::elements);

using padded = cfp::padded_flat_buffer<"padded", "data", 8, up, ln>;
static_assert(padded::elements == 33 && padded::padded == 48 && padded::owned == 24);

// What devices do alone, along one axis or several, and axes of one device, where nothing happens.
using line = cfp::mesh<cfp::axis<"data", 2>, cfp::axis<"expert", 2>, cfp::axis<"model", 1>>;
using whole = cfp::sharded<cfp::dims<"rows=8">, line>;
using piece = cfp::sharded<cfp::dims<"rows=8">, line, cfp::split<"rows", "data", "expert">>;
static_assert(cfp::owes<whole, piece, cfp::slice<"rows", "data", "expert">> &&
              cfp::owes<piece, whole, cfp::all_gather<"rows", "data", "expert">>);
static_assert(cfp::owes<whole, cfp::sharded<cfp::dims<"rows=8">, line, cfp::partial<"data">>, cfp::mask<"data">>);
static_assert(
    cfp::owes<piece, cfp::sharded<cfp::dims<"rows=8">, line, cfp::split<"rows", "data">, cfp::partial<"expert">>,
              cfp::pad<"rows", "expert">>);
static_assert(cfp::owes<whole, whole, cfp::all_reduce<"model">>);
using least = cfp::sharded<cfp::dims<"rows=8">, line, cfp::partial<"data", cfp::reduction::min>>;
static_assert(cfp::owes<least, whole, cfp::all_reduce_min<"data">>);

// What a rule calls a dimension for want of a name is equal to every name.
inline constexpr cfp::op<"b h q d, b h k d -> b h q k"> scores;
inline constexpr cfp::op<"b h q k, b h k d -> b h q d"> weighted_sum;
using heads = cfp::sharded<cfp::dims<"batch", "heads", "seq", "d=64">, grid, cfp::split<"heads", "model">>;
using probabilities = cfp::result_t<scores, heads, heads>;
static_assert(std::is_same_v<cfp::result_t<weighted_sum, probabilities, heads>, heads>);
static_assert(cfp::owes<probabilities,
                        cfp::sharded<cfp::dims<"batch", "heads", "seq", "keys">, grid, cfp::split<"heads", "model">>>);

// The same dimension by another name, where it is meant.
inline constexpr cfp::op<"b s in, in out -> b s out"> linear;
using x = cfp::sharded<cfp::dims<"batch", "seq", "width=8">, grid, cfp::split<"batch", "data">>;
using square = cfp::held_as<"square", cfp::sharded<cfp::dims<"state=8", "next=8">, grid>, bf16>;
static_assert(!cfp::communication_free<linear, x, square>);
using renamed = cfp::renamed<square, "state", "width">;
static_assert(std::is_same_v<cfp::result_t<linear, x, renamed>,
                             cfp::sharded<cfp::dims<"batch", "seq", "next=8">, grid, cfp::split<"batch", "data">>>);
static_assert(renamed::name == "square" && renamed::element_bytes == 2 && renamed::first(5)[0] == 0);

int main() {}
