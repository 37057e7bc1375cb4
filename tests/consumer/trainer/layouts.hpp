// How a GPT-2 is laid out over data=2 x model=4 by hand: tensor parallel (heads, hidden), the vocabulary split, the
// sequence split between blocks, and ZeRO-1 over data. Nothing but the core is included; every layout, every collective
// and every gradient that the program beside this header computes, sends or stores is checked here.
#pragma once

#include <cfp/core.hpp>

#if defined(TINY)
#define BATCH "batch=4"
#define SEQ "seq=8"
#define WIDTH "width=16"
#define HEADS "heads=4 d=4"
#define HIDDEN "hidden=32"
#define VOCABULARY "vocabulary=24"
#else
#define BATCH "batch=16"
#define SEQ "seq=1024"
#define WIDTH "width=768"
#define HEADS "heads=12 d=64"
#define HIDDEN "hidden=3072"
#define VOCABULARY "vocabulary=50304"
#endif

namespace gpt {

#if defined(ALONE)  // the same program on one device, to compare with
using mesh = cfp::mesh<cfp::axis<"data", 1>, cfp::axis<"model", 1>>;
#else
using mesh = cfp::mesh<cfp::axis<"data", 2>, cfp::axis<"model", 4>>;
#endif

// What is computed: a rule each. Operators that are no sum of products and no rearrangement have a name.
inline constexpr cfp::op<"b s in, in out -> b s out"> linear;
inline constexpr cfp::op<"b s out, in out -> b s in"> linear_input;  // gradients
inline constexpr cfp::op<"b s in, b s out -> in out"> linear_weight;
inline constexpr cfp::op<"b s in, v in -> b s v"> dense;  // the head, by the embedding's table
inline constexpr cfp::op<"b s v, v in -> b s in"> dense_input;
inline constexpr cfp::op<"b s v, b s in -> v in"> dense_weight;
inline constexpr cfp::op<"b h q d, b h k d -> b h q k"> scores;
inline constexpr cfp::op<"b h q k, b h k d -> b h q d"> weighted_sum;
inline constexpr cfp::op<"b h s d -> b s (h d)"> merge_heads;
inline constexpr cfp::op<"b s out -> out"> bias_weight;
inline constexpr struct lookup_t : cfp::op<"v m, b s -> b s m; onehot v", lookup_t> {
} lookup;
inline constexpr struct add_t : cfp::op<"..., ... -> ...", add_t> {
  static constexpr cfp::linearity linear = cfp::linearity::all;
} add;
inline constexpr struct positions_t : cfp::op<"b s m, s m -> b s m", positions_t> {
} positions;
inline constexpr struct bias_t : cfp::op<"b s out, out -> b s out", bias_t> {
} bias;
inline constexpr struct layer_norm_t : cfp::op<"b s m, m, m -> b s m; whole m", layer_norm_t> {
} layer_norm;
inline constexpr struct layer_norm_weight_t : cfp::op<"b s m, b s m -> m", layer_norm_weight_t> {
} layer_norm_weight;
inline constexpr struct split_qkv_t
    : cfp::op<"b s (three h d) -> b h s d, b h s d, b h s d; whole three", split_qkv_t> {
} split_qkv;
inline constexpr struct softmax_t : cfp::op<"b h q k -> b h q k; whole k", softmax_t> {
} softmax;
inline constexpr struct gelu_t : cfp::op<"... -> ...", gelu_t> {
} gelu;
inline constexpr struct logits_max_t : cfp::op<"b s v -> b s; max v", logits_max_t> {
} logits_max;
inline constexpr struct logits_sum_t : cfp::op<"b s v, b s -> b s", logits_sum_t> {
} logits_sum;
inline constexpr struct loss_gradient_t : cfp::op<"b s v, b s, b s, b s -> b s v", loss_gradient_t> {
} loss_gradient;

// Weights, as they are computed with; what is named with its element type is what sentences say.
using wte = cfp::held_as<"wte", cfp::sharded<cfp::dims<VOCABULARY, WIDTH>, mesh, cfp::split<"vocabulary", "model">>>;
using wpe = cfp::held_as<"wpe", cfp::sharded<cfp::dims<SEQ, WIDTH>, mesh, cfp::split<"seq", "model">>>;
using ln_1 = cfp::held_as<"ln_1", cfp::sharded<cfp::dims<WIDTH>, mesh>>;
using ln_1_bias = cfp::held_as<"ln_1.bias", cfp::sharded<cfp::dims<WIDTH>, mesh>>;
using attn =
    cfp::held_as<"attn", cfp::sharded<cfp::dims<WIDTH, "(three=3 " HEADS ")">, mesh, cfp::split<"heads", "model">>>;
using attn_bias =
    cfp::held_as<"attn.bias", cfp::sharded<cfp::dims<"(three=3 " HEADS ")">, mesh, cfp::split<"heads", "model">>>;
using proj = cfp::held_as<"proj", cfp::sharded<cfp::dims<"(" HEADS ")", WIDTH>, mesh, cfp::split<"heads", "model">>>;
using proj_bias = cfp::held_as<"proj.bias", cfp::sharded<cfp::dims<WIDTH>, mesh>>;
using ln_2 = cfp::held_as<"ln_2", cfp::sharded<cfp::dims<WIDTH>, mesh>>;
using ln_2_bias = cfp::held_as<"ln_2.bias", cfp::sharded<cfp::dims<WIDTH>, mesh>>;
using up = cfp::held_as<"up", cfp::sharded<cfp::dims<WIDTH, HIDDEN>, mesh, cfp::split<"hidden", "model">>>;
using up_bias = cfp::held_as<"up.bias", cfp::sharded<cfp::dims<HIDDEN>, mesh, cfp::split<"hidden", "model">>>;
using down = cfp::held_as<"down", cfp::sharded<cfp::dims<HIDDEN, WIDTH>, mesh, cfp::split<"hidden", "model">>>;
using down_bias = cfp::held_as<"down.bias", cfp::sharded<cfp::dims<WIDTH>, mesh>>;
using ln_f = cfp::held_as<"ln_f", cfp::sharded<cfp::dims<WIDTH>, mesh>>;
using ln_f_bias = cfp::held_as<"ln_f.bias", cfp::sharded<cfp::dims<WIDTH>, mesh>>;

// Activations between blocks: the sequence split over model. Inside of one: all of it.
using stream = cfp::held_as<"stream", cfp::sharded<cfp::dims<BATCH, SEQ, WIDTH>, mesh, cfp::split<"batch", "data">,
                                                   cfp::split<"seq", "model">>>;
using gathered = cfp::held_as<"stream", cfp::sharded<cfp::dims<BATCH, SEQ, WIDTH>, mesh, cfp::split<"batch", "data">>>;
using tokens = cfp::held_as<"tokens", cfp::sharded<cfp::dims<BATCH, SEQ>, mesh, cfp::split<"batch", "data">>, int>;
using per_token = cfp::held_as<"per_token", cfp::sharded<cfp::dims<BATCH, SEQ>, mesh, cfp::split<"batch", "data">>>;

// Into the stream: the sum over pieces of the vocabulary is completed and split in one collective.
using embedded = cfp::held_as<"embedded", cfp::result_t<lookup, wte, tokens>>;
static_assert(cfp::owes<embedded, stream, cfp::reduce_scatter<"seq", "model">>);
using at_positions = cfp::result_t<positions, stream, wpe>;
static_assert(cfp::owes<at_positions, stream>);  // nothing

// Attention.
using normal_1 = cfp::result_t<layer_norm, stream, ln_1, ln_1_bias>;
static_assert(cfp::owes<normal_1, gathered, cfp::all_gather<"seq", "model">>);
using qkv = cfp::result_t<bias, cfp::result_t<linear, gathered, attn>, attn_bias>;
using query = cfp::result_at_t<split_qkv, 0, qkv>;
using key = cfp::result_at_t<split_qkv, 1, qkv>;
using value = cfp::result_at_t<split_qkv, 2, qkv>;
using weights = cfp::result_t<softmax, cfp::result_t<scores, query, key>>;
using attended = cfp::result_t<merge_heads, cfp::result_t<weighted_sum, weights, value>>;
using projected = cfp::held_as<"projected", cfp::result_t<linear, attended, proj>>;
static_assert(cfp::owes<projected, stream, cfp::reduce_scatter<"seq", "model">>);
static_assert(cfp::communication_free<add, cfp::result_t<bias, stream, proj_bias>, stream>);

// The perceptron.
using normal_2 = cfp::result_t<layer_norm, stream, ln_2, ln_2_bias>;
static_assert(cfp::owes<normal_2, gathered, cfp::all_gather<"seq", "model">>);
using hidden = cfp::result_t<gelu, cfp::result_t<bias, cfp::result_t<linear, gathered, up>, up_bias>>;
using lowered = cfp::held_as<"lowered", cfp::result_t<linear, hidden, down>>;
static_assert(cfp::owes<lowered, stream, cfp::reduce_scatter<"seq", "model">>);
static_assert(cfp::communication_free<add, cfp::result_t<bias, stream, down_bias>, stream>);

// The loss, over pieces of the vocabulary.
using normal_f = cfp::result_t<layer_norm, stream, ln_f, ln_f_bias>;
static_assert(cfp::owes<normal_f, gathered, cfp::all_gather<"seq", "model">>);
using logits = cfp::held_as<"logits", cfp::result_t<dense, gathered, wte>>;
using largest = cfp::held_as<"largest", cfp::result_t<logits_max, logits>>;
static_assert(cfp::owes<largest, per_token, cfp::all_reduce_max<"model">>);
using total = cfp::held_as<"total", cfp::result_t<logits_sum, logits, per_token>>;
static_assert(cfp::owes<total, per_token, cfp::all_reduce<"model">>);

// Backward: what flows back is held as what flowed; what weights get is parts of a sum over data.
using d_logits =
    cfp::held_as<"logits.grad",
                 cfp::result_t<loss_gradient, logits, per_token, per_token, cfp::held_as<"targets", tokens, int>>>;
using d_normal_f = cfp::held_as<"stream.grad", cfp::result_t<dense_input, d_logits, wte>>;
static_assert(cfp::owes<d_normal_f, stream, cfp::reduce_scatter<"seq", "model">>);
using d_hidden = cfp::result_t<linear_input, gathered, down>;
using d_normal_2 = cfp::held_as<"stream.grad", cfp::result_t<linear_input, d_hidden, up>>;
static_assert(cfp::owes<d_normal_2, stream, cfp::reduce_scatter<"seq", "model">>);
using d_attended = cfp::result_t<linear_input, gathered, proj>;
using d_normal_1 = cfp::held_as<"stream.grad", cfp::result_t<linear_input, qkv, attn>>;
static_assert(cfp::owes<d_normal_1, stream, cfp::reduce_scatter<"seq", "model">>);

// ZeRO-1: weights and Adam's moments flat, one share on each device along data.
using adam = cfp::flat_buffer<"adam", "data", wte, wpe, ln_1, ln_1_bias, attn, attn_bias, proj, proj_bias, ln_2,
                              ln_2_bias, up, up_bias, down, down_bias, ln_f, ln_f_bias>;
// Every device along model has seen a piece of the sequence only: what belongs to all of them is added up first.
using norm_gradient = cfp::held_as<"norm.grad", cfp::result_t<layer_norm_weight, stream, stream>>;
using norm_parts = cfp::held_as<"norm.grad", cfp::sharded<cfp::dims<WIDTH>, mesh, cfp::partial<"data">>>;
static_assert(cfp::owes<norm_gradient, norm_parts, cfp::all_reduce<"model">>);
using stream_bias_gradient = cfp::held_as<"bias.grad", cfp::result_t<bias_weight, stream>>;
static_assert(cfp::owes<stream_bias_gradient, norm_parts, cfp::all_reduce<"model">>);

static_assert(adam::takes<wte, cfp::result_t<dense_weight, d_logits, gathered>>);
static_assert(
    adam::takes<wpe, cfp::sharded<cfp::dims<SEQ, WIDTH>, mesh, cfp::split<"seq", "model">, cfp::partial<"data">>>);
static_assert(adam::takes<ln_1, norm_parts> && adam::takes<ln_1_bias, norm_parts> && adam::takes<ln_2, norm_parts>);
static_assert(adam::takes<ln_2_bias, norm_parts> && adam::takes<ln_f, norm_parts> &&
              adam::takes<ln_f_bias, norm_parts>);
static_assert(adam::takes<proj_bias, norm_parts> && adam::takes<down_bias, norm_parts>);
static_assert(adam::takes<attn, cfp::result_t<linear_weight, gathered, qkv>>);
static_assert(adam::takes<attn_bias, cfp::result_t<bias_weight, qkv>>);
static_assert(adam::takes<proj, cfp::result_t<linear_weight, attended, gathered>>);
static_assert(adam::takes<up, cfp::result_t<linear_weight, gathered, hidden>>);
static_assert(adam::takes<up_bias, cfp::result_t<bias_weight, hidden>>);
static_assert(adam::takes<down, cfp::result_t<linear_weight, hidden, gathered>>);
static_assert(cfp::owes<cfp::parts_t<adam>, cfp::share_t<adam>, cfp::reduce_scatter<"flat", "data">>);
static_assert(cfp::owes<cfp::share_t<adam>, cfp::whole_t<adam>, cfp::all_gather<"flat", "data">>);

}  // namespace gpt
