// A layer of a decoder: attention and MLP, as its description says.
#pragma once

#include <cfp/families/transformer.hpp>
#include <cfp/model/trace.hpp>
#include <cfp/op/activation.hpp>
#include <cfp/op/attention.hpp>
#include <cfp/op/dropout.hpp>
#include <cfp/op/normalization.hpp>
#include <cfp/op/softmax.hpp>

#include <bit>
#include <cmath>
#include <string>
#include <string_view>

namespace cfp::inline v0_1::families {

/// Dropout, where the model has any.
constexpr tensor dropped(tensor x, double share) { return share > 0 ? dropout(x, share) : x; }

/// Normalised over its last dimension, by the weights of the scope it stands in.
constexpr tensor normalised(model& net, tensor x, const transformer& t, dimension over,
                            std::string_view weight_name = "weight") {
  const double per = 1.0 / static_cast<double>(over.size);
  const bool plus_one = t.norm == norm_kind::rms_plus_one;
  const tensor weight = net.weight(weight_name, {over}, {plus_one ? 0.0 : 1.0});
  if (t.norm == norm_kind::rms || plus_one)
    return rms_norm(x, rms_square(x), plus_one ? cfp::plus_one(weight) : weight, per, t.epsilon);
  if (t.norm == norm_kind::layer_unbiased) {
    const tensor sum = norm_sum(x), square = norm_square(x, sum, per);
    return layer_norm_unbiased(x, sum, square, weight, per, t.epsilon);
  }
  const tensor shift = net.weight("bias", {over}, {0.0});
  const tensor sum = norm_sum(x), square = norm_square(x, sum, per);
  return layer_norm(x, sum, square, weight, shift, per, t.epsilon);
}
constexpr tensor normalised(model& net, tensor x, const transformer& t) {
  return normalised(net, x, t, {"embedding", t.width});
}

/// x times a weight of the scope, and its bias.
constexpr tensor projected(model& net, tensor x, const transformer& t, std::string_view name, dimension in,
                           dimension out, bool biased, double deviation) {
  const std::initializer_list<dimension> stored = {t.in_out ? in : out, t.in_out ? out : in};
  const tensor weight = net.weight(model::join(name, "weight"), stored, {0.0, deviation});
  if (!biased) return t.in_out ? linear(x, weight) : dense(x, weight);
  const tensor shift = net.weight(model::join(name, "bias"), {out}, {0.0});
  return bias(t.in_out ? linear(x, weight) : dense(x, weight), shift);
}

namespace decoder_detail {

inline tensor turned(tensor x, const transformer& t) {
  const long depth = t.head_depth(), turns = t.turned > 0 ? t.turned : depth;
  if (t.position == position_kind::rotary_pairs)
    return rotary_pairs(x, std::log(t.rope), 2.0 / static_cast<double>(turns), static_cast<double>(turns / 2),
                        size_of{"half", 2}, size_of{"out", 2});
  const long parts = depth / (turns / 2);
  return rotary(x, std::log(t.rope), 2.0 / static_cast<double>(turns), size_of{"half", parts}, size_of{"out", parts});
}

constexpr bool turns(const transformer& t) {
  return t.position == position_kind::rotary || t.position == position_kind::rotary_pairs;
}

// Shares of what each query sees, of scores before they are scaled.
constexpr tensor shares(tensor score, const transformer& t, long layer) {
  const double scale = t.score_scale > 0 ? t.score_scale : 1.0 / std::sqrt(static_cast<double>(t.head_depth()));
  if (t.score_cap > 0) score = soft_cap(score, t.score_cap / scale);
  if (t.position == position_kind::slopes)
    score = add_slopes(score, static_cast<double>(std::bit_floor(static_cast<unsigned long>(t.heads))), 1 / scale);
  if (t.has_window(layer)) score = windowed(score, static_cast<double>(t.window));
  const tensor max = masked_max(score, scale, causal), sum = masked_sum(score, max, scale, causal);
  return dropped(masked_softmax(score, max, sum, scale, causal), t.attention_dropout);
}

// Of as many heads of keys and values as of queries.
constexpr tensor heads_of_their_own(model& net, tensor x, const transformer& t, long layer) {
  const dimension embedding{"embedding", t.width};
  const long all = t.heads * t.head_depth();
  const size_of heads{"heads", t.heads};
  const auto attended = [&](tensor q, tensor k, tensor v) {
    if (turns(t)) q = turned(q, t), k = turned(k, t);
    return merge_heads(weighted_sum(shares(scores(q, k), t, layer), v));
  };
  if (t.projection != projection_kind::separate) {
    const tensor joined =
        projected(net, x, t, t.names.joined, embedding, {"qkv", 3 * all}, t.attention_bias, t.deviation);
    const auto [q, k, v] = t.projection == projection_kind::joined
                               ? split_qkv(joined, size_of{"three", 3}, heads)
                               : split_qkv_by_head(joined, heads, size_of{"three", 3});
    return attended(q, k, v);
  }
  const auto part = [&](std::string_view name) {
    return split_heads(projected(net, x, t, name, embedding, {"heads", all}, t.attention_bias, t.deviation), heads);
  };
  const tensor q = part(t.names.query), k = part(t.names.key), v = part(t.names.value);
  return attended(q, k, v);
}

// Of fewer heads of keys and values, each of which several queries read.
inline tensor grouped_heads(model& net, tensor x, const transformer& t, long layer) {
  const long depth = t.head_depth();
  const dimension embedding{"embedding", t.width}, queries{"heads", t.heads * depth}, keys{"heads", t.kv_heads * depth};
  const size_of kv{"heads", t.kv_heads}, group{"group", t.heads / t.kv_heads};
  const auto part = [&](std::string_view name, dimension out) {
    return projected(net, x, t, name, embedding, out, t.attention_bias, t.deviation);
  };
  const auto normed = [&](tensor y, dimension over, std::string_view name, bool of_head) {
    if (t.query_norm != (of_head ? query_norm_kind::of_head : query_norm_kind::whole)) return y;
    return normalised(net, y, t, over, model::join(name, "weight").view());
  };
  const dimension one{"depth", depth};
  const tensor q = normed(part(t.names.query, queries), queries, t.names.query_norm, false);
  const tensor k = split_heads(normed(part(t.names.key, keys), keys, t.names.key_norm, false), kv);
  const tensor v = split_heads(part(t.names.value, keys), kv);
  const tensor key = normed(k, one, t.names.key_norm, true);
  const tensor kept = turns(t) ? turned(key, t) : key;
  const tensor query = normed(split_groups(q, kv, group), one, t.names.query_norm, true);
  const tensor score = grouped_scores(turns(t) ? turned(query, t) : query, kept);
  return merge_groups(grouped_sum(shares(score, t, layer), v));
}

constexpr tensor activated(tensor x, activation_kind by) {
  return by == activation_kind::gelu ? gelu(x) : by == activation_kind::gelu_exact ? gelu_exact(x) : relu(x);
}

}  // namespace decoder_detail

/// What attention adds to the residual. `residual`: the deviation of the weight behind it.
constexpr tensor attention_part(model& net, tensor x, const transformer& t, long layer, double residual) {
  const dimension heads{"heads", t.heads * t.head_depth()}, embedding{"embedding", t.width};
  const tensor together = t.kv_heads > 0 ? decoder_detail::grouped_heads(net, x, t, layer)
                                         : decoder_detail::heads_of_their_own(net, x, t, layer);
  return dropped(projected(net, together, t, t.names.out, heads, embedding, t.out_bias, residual), t.residual_dropout);
}

/// What the MLP adds to it.
constexpr tensor mlp_part(model& net, tensor x, const transformer& t, double residual) {
  const dimension embedding{"embedding", t.width}, hidden{"hidden", t.inner()};
  const auto wide = [&](std::string_view name) {
    return projected(net, x, t, name, embedding, hidden, t.mlp_bias, t.deviation);
  };
  tensor inner{};
  if (t.gated()) {
    const tensor gate = wide(t.names.gate), up = wide(t.names.up);
    inner = t.activation == activation_kind::gated_silu ? gated_silu(gate, up) : gated_gelu(gate, up);
  } else {
    inner = decoder_detail::activated(wide(t.names.up), t.activation);
  }
  return dropped(projected(net, inner, t, t.names.down, hidden, embedding, t.mlp_bias, residual), t.residual_dropout);
}

/// One layer, with an MLP of the caller's choice: `mlp(net, x)`. `name`: of its parameters; `number`: from 0.
template <class Mlp>
constexpr tensor decoder_layer(model& net, tensor x, const transformer& t, std::string_view name, long number,
                               double residual, const Mlp& mlp_of) {
  const weight_names& n = t.names;
  const auto in = [&](std::string_view part) { net.scope(model::join(name, part)); };
  const auto norm = [&](tensor y, std::string_view part) {
    in(part);
    return normalised(net, y, t);
  };
  const auto attention = [&](tensor y) {
    in(n.attention);
    return attention_part(net, y, t, number, residual);
  };
  const auto mlp = [&](tensor y) { return mlp_of(net, y); };
  if (t.layer == layer_kind::parallel || t.layer == layer_kind::parallel_shared) {
    const tensor first = norm(x, n.attention_norm);
    const tensor second = t.layer == layer_kind::parallel ? norm(x, n.mlp_norm) : first;
    const tensor attended = attention(first);
    return add(add(x, attended), mlp(second));
  }
  const bool before = t.layer != layer_kind::norm_behind, behind = t.layer != layer_kind::norm_before;
  const auto add_part = [&](tensor y, auto part, std::string_view norm_before, std::string_view norm_behind) {
    const tensor made = part(before ? norm(y, norm_before) : y);
    return add(y, behind ? norm(made, norm_behind) : made);
  };
  x = add_part(x, attention, n.attention_norm, n.behind_attention);
  return add_part(x, mlp, n.mlp_norm, n.behind_mlp);
}

/// With that of the description: what the compiler checks and what is trained.
constexpr tensor decoder_layer(model& net, tensor x, const transformer& t, std::string_view name, long number,
                               double residual) {
  return decoder_layer(net, x, t, name, number, residual, [&](model& m, tensor y) {
    if (t.names.mlp.empty()) m.scope(name);
    else m.scope(model::join(name, t.names.mlp));
    return mlp_part(m, y, t, residual);
  });
}

}  // namespace cfp::families
