// What the compiler answers: every line is a fact.
#include <cfp/core.hpp>
#include <cfp/op/attention.hpp>
#include <cfp/op/catalogue.hpp>
#include <cfp/op/normalization.hpp>
#include <cfp/op/softmax.hpp>

#include <type_traits>

using namespace cfp;

namespace {

using grid = mesh<cfp::axis<"data", 2>, cfp::axis<"model", 4>>;

// Canonical: equal meaning, same type.
using x = sharded<dims<"batch", "seq", "width">, grid, split<"batch", "data">>;
static_assert(std::is_same_v<x, partitioned<dims<"batch", "seq", "width">, grid, "batch:data">>);
static_assert(std::is_same_v<sharded<dims<"a", "b">, grid, split<"a", "data">, split<"b", "model">>,
                             sharded<dims<"a", "b">, grid, split<"b", "model">, split<"a", "data">>>);
static_assert(!std::is_same_v<sharded<dims<"a">, grid, split<"a", "data", "model">>,
                              sharded<dims<"a">, grid, split<"a", "model", "data">>>);
using thin = mesh<cfp::axis<"data", 1>, cfp::axis<"model", 4>>;
static_assert(std::is_same_v<sharded<dims<"a">, thin, split<"a", "data">>, sharded<dims<"a">, thin>>);
static_assert(std::is_same_v<sharded<dims<"a">, thin, partial<"data">>, sharded<dims<"a">, thin>>);
using tight = sharded<dims<"(h=4 d)">, grid>;
using wide = sharded<dims<"( h=04  d )">, grid>;
static_assert(std::is_same_v<wide, tight>);
static_assert(std::is_same_v<sharded<dims<>, grid>, partitioned<dims<>, grid, "replicated">>);

// What a device holds; sizes known here or at run time, the same sentence.
using sized = sharded<dims<"batch=32", "width=768">, grid, split<"width", "data", "model">>;
static_assert(sized::local()[0] == 32 && sized::local()[1] == 96);
static_assert(!x::sized);
constexpr extents given{{31, 5, 8}, 3};
static_assert(
    x::problem(given) ==
    "dimension 'batch' has 31 elements, which 2 devices (data=2) do not divide; take a multiple of 2 or fewer devices");
static_assert(x::problem({{32, 5, 8}, 3}).empty());

// A matrix product: rows and columns are free, the inner factor owes an all-reduce.
constexpr op<"rows in, in columns -> rows columns"> product;
using a = dims<"rows", "inner">;
using b = dims<"inner", "columns">;
using c = dims<"rows", "columns">;
static_assert(communication_free<product, sharded<a, grid, split<"rows", "data">>, sharded<b, grid>>);
static_assert(std::is_same_v<
              result_t<product, sharded<a, grid, split<"rows", "data">>, sharded<b, grid, split<"columns", "model">>>,
              sharded<c, grid, split<"rows", "data">, split<"columns", "model">>>);
using inner = result_t<product, sharded<a, grid, split<"inner", "model">>, sharded<b, grid, split<"inner", "model">>>;
static_assert(std::is_same_v<inner, sharded<c, grid, partial<"model">>>);
static_assert(steps<inner>.size() == 1 && steps<inner>.count(step_kind::all_reduce) == 1);
static_assert(steps<inner>[0].axes.size() == 1 && steps<inner>[0].axes[0] == "model");
static_assert(!communication_free<product, sharded<a, grid, split<"inner", "model">>, sharded<b, grid>>);
static_assert(
    !communication_free<product, sharded<a, grid, split<"inner", "data">>, sharded<b, grid, split<"inner", "model">>>);
static_assert(communication_free<product, sharded<a, grid, split<"inner", "data", "model">>,
                                 sharded<b, grid, split<"inner", "data", "model">>>);
static_assert(!communication_free<product, sharded<a, grid, split<"inner", "data", "model">>,
                                  sharded<b, grid, split<"inner", "model", "data">>>);
static_assert(strategies<product>.size() == 3);
static_assert(strategies<product>[0] == factor_strategy{"rows", factor_kind::parallel, {}, reduction::sum});
static_assert(strategies<product>[1] == factor_strategy{"in", factor_kind::reduction, {}, reduction::sum});
static_assert(strategies<product>[2].free());

// It is a bool: usable in requires and if constexpr.
template <class X, class W>
  requires communication_free<product, X, W>
constexpr bool runs(X, W) { return true; }
template <class X, class W>
constexpr bool runs_somehow(X, W) {
  if constexpr (communication_free<product, X, W>) return true;
  else return false;
}
template <class X, class W>
concept can_run = requires(X v, W w) {
  runs(v, w);
};
static_assert(runs(sharded<a, grid>{}, sharded<b, grid>{}));
static_assert(can_run<sharded<a, grid>, sharded<b, grid>>);
static_assert(!can_run<sharded<a, grid, split<"inner", "model">>, sharded<b, grid>>);
static_assert(!runs_somehow(sharded<a, grid, split<"inner", "model">>{}, sharded<b, grid>{}));

// Bytes, when sizes are known: rings send (n-1)/n of a tensor to gather it, twice that to all-reduce it.
using big = dims<"rows=1024", "columns=256">;
constexpr long mib = 1024 * 256 * 4;
static_assert(steps<sharded<big, grid, partial<"model">>>.bytes() == 2 * 3 * mib / 4);
static_assert(steps<sharded<big, grid, split<"rows", "model">>, sharded<big, grid>>.bytes() == 3 * mib / 4);
static_assert(steps<sharded<big, grid, split<"rows", "model">>, sharded<big, grid>>.bytes(2) == 3 * mib / 8);
static_assert(steps<sharded<big, grid, split<"rows", "model">>, sharded<big, grid, split<"columns", "model">>>.count(
                  step_kind::all_to_all) == 1);
static_assert(steps<sharded<big, grid>, sharded<big, grid, split<"rows", "data">>>.local());
static_assert(steps<inner>.bytes() == 0);  // sizes are left to run time

// Column-then-row split of an MLP: the activation between stays split, one all-reduce at the end.
using w_up = sharded<dims<"width", "hidden">, grid, split<"hidden", "model">>;
using w_down = sharded<dims<"hidden", "width">, grid, split<"hidden", "model">>;
using h = result_t<gelu, result_t<linear, x, w_up>>;
using y = result_t<linear, h, w_down>;
static_assert(
    std::is_same_v<h, sharded<dims<"batch", "seq", "hidden">, grid, split<"batch", "data">, split<"hidden", "model">>>);
static_assert(steps<y>.size() == 1 && steps<y>.count(step_kind::all_reduce) == 1);
// Row-first leaves a sum that gelu must not see.
using row_first = result_t<linear, sharded<dims<"batch", "seq", "width">, grid, split<"width", "model">>,
                           sharded<dims<"width", "hidden">, grid, split<"width", "model">>>;
static_assert(!communication_free<gelu, row_first>);
static_assert(why<gelu, row_first>.starts_with(
    "gelu: operand 0 (batch seq hidden) is a partial sum over 'model', and the operator is not linear; "
    "mend: "));
// A partial sum may be added to another one, not to a full value.
static_assert(communication_free<add, y, y>);
static_assert(!communication_free<add, y, x>);

// Fused weights, split by heads or by features.
using qkv = result_t<linear, x, sharded<dims<"width", "(three heads d)">, grid, split<"heads", "model">>>;
static_assert(std::is_same_v<qkv, sharded<dims<"batch", "seq", "(three heads d)">, grid, split<"batch", "data">,
                                          split<"heads", "model">>>);
using q = result_t<split_qkv, qkv>;
static_assert(std::is_same_v<
              q, sharded<dims<"batch", "heads", "seq", "d">, grid, split<"batch", "data">, split<"heads", "model">>>);
using k = result_at_t<split_qkv, 1, qkv>;
static_assert(std::is_same_v<q, k>);
using s = result_t<scores, q, k>;
static_assert(s::held.on(1).kind == placement::split && s::dims_type::value.parts[1] == "heads");
using merged = result_t<merge_heads, result_t<weighted_sum, s, q>>;
static_assert(
    std::is_same_v<merged,
                   sharded<dims<"batch", "seq", "(heads d)">, grid, split<"batch", "data">, split<"heads", "model">>>);
// The next weight names its rows as one dimension or as heads and their elements: both fit.
using out1 = result_t<linear, merged, sharded<dims<"rows", "width">, grid, split<"rows", "model">>>;
using out2 = result_t<linear, merged, sharded<dims<"(heads d)", "width">, grid, split<"heads", "model">>>;
static_assert(std::is_same_v<out1, out2>);
static_assert(steps<out1>.count(step_kind::all_reduce) == 1);
// Split blindly, 'three' would be torn.
using blind = result_t<linear, x, sharded<dims<"width", "qkv">, grid, split<"qkv", "model">>>;
static_assert(!communication_free<split_qkv, blind>);
static_assert(why<split_qkv, blind>.find("must stay whole and is its major part; name the parts") !=
              std::string_view::npos);
using gate_up = result_t<linear, x, sharded<dims<"width", "(two f)">, grid, split<"f", "model">>>;
static_assert(gate_up::dims_type::value.parts[3] == "f" && gate_up::held.on(1).dim == 3);

// Normalisation and softmax: what is reduced must be whole or is owed.
using row_sum = result_t<norm_sum, sharded<dims<"batch", "width">, grid, split<"width", "model">>>;
static_assert(steps<row_sum>.count(step_kind::all_reduce) == 1);
using row_max = result_t<logits_max, sharded<dims<"batch", "vocabulary">, grid, split<"vocabulary", "model">>>;
static_assert(std::is_same_v<row_max, sharded<dims<"batch">, grid, partial<"model", reduction::max>>>);
// A table split over its positions leaves parts of a sum with one summand.
static_assert(std::is_same_v<result_t<lookup, sharded<dims<"vocabulary", "width">, grid, split<"vocabulary", "model">>,
                                      sharded<dims<"batch", "seq">, grid>>,
                             sharded<dims<"batch", "seq", "width">, grid, partial<"model">>>);

// A convolution over height owes a halo; a running sum a carry.
constexpr op<"b c h w, o c kh kw -> b o h w; halo h kh; halo w kw"> convolution;
using image = dims<"batch", "channels", "height", "width">;
using filter = dims<"out", "channels", "kh=3", "kw=3">;
static_assert(communication_free<convolution, sharded<image, grid, split<"batch", "data">>,
                                 sharded<filter, grid, split<"out", "model">>>);
static_assert(!communication_free<convolution, sharded<image, grid, split<"height", "model">>, sharded<filter, grid>>);
static_assert(why<convolution, sharded<image, grid, split<"height", "model">>, sharded<filter, grid>>.find(
                  "a halo of 2 positions is owed") != std::string_view::npos);
static_assert(strategies<convolution>[2].kind == factor_kind::halo && strategies<convolution>[2].window == "kh");
constexpr struct running_sum_t : op<"b s -> b s; scan s", running_sum_t> {
} running_sum;
static_assert(!communication_free<running_sum, sharded<dims<"b", "s">, grid, split<"s", "model">>>);
static_assert(strategies<running_sum>[1].kind == factor_kind::scan);

// A window of one reaches nobody.
static_assert(communication_free<convolution, sharded<image, grid, split<"height", "model">>,
                                 sharded<dims<"out", "channels", "kh=1", "kw=1">, grid>>);

// Parts of a maximum are no parts of a sum, and a maximum of a sum is no sum of maxima.
constexpr struct greatest_t : op<"a b -> a; max b", greatest_t> {
  static constexpr linearity linear = linearity::all;
} greatest;
using summand = sharded<dims<"a", "b">, grid, partial<"model">>;
static_assert(!communication_free<greatest, summand>);
static_assert(!communication_free<add, row_max, row_max>);
static_assert(why<gelu, row_max>.starts_with(
    "gelu: operand 0 (batch) holds parts of a maximum or minimum over 'model', which must be completed first"));

// Mends start from the whole partition: adding zeros is cheapest here, and 'in' must not be split sixteen ways there.
using full_row = sharded<dims<"w=8">, grid>;
static_assert(why<add, sharded<dims<"w=8">, grid, partial<"model">>, full_row>.find(
                  "mend: all_reduce operand 0 over 'model', 48 bytes per device") != std::string_view::npos);
using square = mesh<cfp::axis<"data", 4>, cfp::axis<"model", 4>>;
using in_by_data = sharded<dims<"b=8", "in=8">, square, split<"in", "data">, split<"b", "model">>;
using out_by_model = sharded<dims<"in=8", "out=8">, square, split<"in", "data">, split<"out", "model">>;
static_assert(why<product, in_by_data, out_by_model>.ends_with(
    "mend: all_gather 'out' of operand 1 over 'model', 48 bytes per device"));
static_assert(
    communication_free<product, in_by_data, sharded<dims<"in=8", "out=8">, square, split<"in", "data">>>);  // mended
static_assert(steps<out_by_model, sharded<dims<"in=8", "out=8">, square, split<"in", "data">>>.bytes() ==
              3 * (8 * 8 * 4 / 4) / 4);

// A user's operator is one line (and a functor to run it).
constexpr struct swiglu_t : op<"..., ... -> ...", swiglu_t> {
} swiglu;
static_assert(communication_free<swiglu, h, h>);
static_assert(!communication_free<swiglu, row_first, row_first>);

// Chains: which dimensions cross.
static_assert(parallel_block<dims<"batch", "seq", "width">, carried<"batch", "seq">, linear, gelu, linear>);
static_assert(!parallel_block<dims<"batch", "seq", "width">, carried<"width">, linear>);
static_assert(parallel_block<dims<"batch", "seq", "(three heads d)">, carried<"batch", "heads">, split_qkv, scores,
                             weighted_sum, merge_heads>);
static_assert(!parallel_block<dims<"batch", "seq", "(three heads d)">, carried<"d">, split_qkv, scores>);
static_assert(!parallel_block<dims<"batch", "seq", "(three heads d)">, carried<"three">, split_qkv>);

}  // namespace

int main() {}
