// Attention of a layer, as its description says.
#pragma once

#include <cfp/families/in_pieces.hpp>
#include <cfp/families/parts.hpp>
#include <cfp/families/turning.hpp>
#include <cfp/op/softmax.hpp>

#include <bit>
#include <cmath>
#include <string_view>

namespace cfp::inline v0_1::families {

namespace decoder_detail {

// The number of each token's document in its row, which every layer reads.
constexpr tensor documents_of(model& net, const transformer& t) {
  for (int v = 0; v < net.recorded.value_count(); ++v)
    if (net.recorded[v].role == value_role::input && net.recorded[v].label == "documents") return {&net, v};
  return net.input("documents", {{"batch", t.batch}, {"~sequence", t.sequence}}, element::real, {1.0, 0.0});
}

constexpr double scale_of(const transformer& t) {
  return (t.score_scale > 0 ? t.score_scale : 1.0 / std::sqrt(static_cast<double>(t.head_depth()))) *
         t.turns.score_factor;
}

// Shares of what each query sees, of scores before they are scaled.
constexpr tensor shares(tensor score, const transformer& t, long layer) {
  const double scale = scale_of(t);
  if (t.score_cap > 0) score = soft_cap(score, t.score_cap / scale);
  if (t.position == position_kind::slopes)
    score = add_slopes(score, static_cast<double>(std::bit_floor(static_cast<unsigned long>(t.heads))), 1 / scale);
  if (t.packed) {
    const tensor documents = documents_of(*score.net, t);
    score = same_document(score, documents, documents);
  }
  if (t.has_window(layer)) score = windowed(score, static_cast<double>(t.window));
  const double reach = t.sees_ahead ? everywhere : causal;
  const tensor max = masked_max(score, scale, reach), sum = masked_sum(score, max, scale, reach);
  return dropped(masked_softmax(score, max, sum, scale, reach), t.attention_dropout);
}

// What queries see, of pieces of the sequence.
constexpr tensor attended_in_pieces(tensor q, tensor k, tensor v, const transformer& t, long layer) {
  const size_of pieces{"pieces", t.pieces};
  const double window = t.has_window(layer) ? static_cast<double>(t.window) : everywhere;
  const bool grouped = q.net->recorded[q.id].rank() == 5;
  const tensor y =
      attention_in_pieces(grouped ? in_pieces_of_group(q, pieces) : in_pieces(q, pieces), in_pieces(k, pieces),
                          in_pieces(v, pieces), {scale_of(t), window, t.score_cap, t.attention_dropout});
  return grouped ? of_pieces_of_group(y) : of_pieces(y);
}

// A projection of queries, keys or values.
constexpr tensor held(tensor x, const transformer& t) { return t.clip > 0 ? clamped(x, t.clip) : x; }

// Of as many heads of keys and values as of queries.
constexpr tensor heads_of_their_own(model& net, tensor x, const transformer& t, long layer) {
  const dimension embedding{"embedding", t.width};
  const long depth = t.head_depth(), all = t.heads * depth;
  const size_of heads{"heads", t.heads};
  const auto attended = [&](tensor q, tensor k, tensor v) {
    if (t.is_turned()) q = turned(q, t, depth), k = turned(k, t, depth);
    if (t.pieces > 0) return merge_heads(attended_in_pieces(q, k, v, t, layer));
    return merge_heads(weighted_sum(shares(scores(q, k), t, layer), v));
  };
  if (t.projection != projection_kind::separate) {
    const tensor joined =
        held(projected(net, x, t, t.names.joined, embedding, {"qkv", 3 * all}, t.attention_bias, t.deviation), t);
    const auto [q, k, v] = t.projection == projection_kind::joined
                               ? split_qkv(joined, size_of{"three", 3}, heads)
                               : split_qkv_by_head(joined, heads, size_of{"three", 3});
    return attended(q, k, v);
  }
  const auto part = [&](std::string_view name) {
    return split_heads(held(projected(net, x, t, name, embedding, {"heads", all}, t.attention_bias, t.deviation), t),
                       heads);
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
    return held(projected(net, x, t, name, embedding, out, t.attention_bias, t.deviation), t);
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
  const tensor kept = t.is_turned() ? turned(key, t, depth) : key;
  const tensor query = normed(split_groups(q, kv, group), one, t.names.query_norm, true);
  const tensor asked = t.is_turned() ? turned(query, t, depth) : query;
  if (t.pieces > 0) return merge_groups(attended_in_pieces(asked, kept, v, t, layer));
  const tensor score = grouped_scores(asked, kept);
  return merge_groups(grouped_sum(shares(score, t, layer), v));
}

// Of keys and values that are made of a few numbers of each token, and of queries that may be (multi-head latent
// attention, arXiv 2405.04434). A head's numbers are two parts: those that turn, of which all heads share the key, and
// the others. What checkpoints hold as one weight for several of these parts is a weight for each.
inline tensor latent_heads(model& net, tensor x, const transformer& t, long layer) {
  const latent_form& a = t.latent;
  const size_of heads{"heads", t.heads};
  const dimension embedding{"embedding", t.width}, keys{"latent", a.keys}, queries{"latent", a.queries};
  transformer of_latent = t;
  of_latent.epsilon = 1e-6;  // whatever that of the other norms is
  const auto rows = [&](tensor from, std::string_view name, dimension in, dimension out) {
    return projected(net, from, t, name, in, out, false, t.deviation);
  };
  const auto of_heads = [&](tensor from, std::string_view name, dimension in, long depth) {
    return split_heads(rows(from, name, in, {"heads", t.heads * depth}), heads);
  };
  tensor still{}, query{};
  if (a.queries > 0) {
    const tensor few =
        normalised(net, rows(x, "q_a_proj", embedding, queries), of_latent, queries, "q_a_layernorm.weight");
    still = of_heads(few, "q_b_proj.nope", queries, a.still);
    query = of_heads(few, "q_b_proj.rope", queries, a.turned);
  } else {
    still = of_heads(x, "q_proj.nope", embedding, a.still);
    query = of_heads(x, "q_proj.rope", embedding, a.turned);
  }
  const tensor few =
      normalised(net, rows(x, "kv_a_proj_with_mqa.latent", embedding, keys), of_latent, keys, "kv_a_layernorm.weight");
  const tensor key = rows(x, "kv_a_proj_with_mqa.rope", embedding, {"turned", a.turned});
  const tensor kept = of_heads(few, "kv_b_proj.k", keys, a.still), v = of_heads(few, "kv_b_proj.v", keys, a.values);
  const tensor by_content = scores(still, kept);
  const tensor turned_query = turned(query, t, a.turned), turned_key = turned(key, t, a.turned);
  const tensor by_place = shared_scores(turned_query, turned_key);
  return merge_heads(weighted_sum(shares(add(by_content, by_place), t, layer), v));
}

}  // namespace decoder_detail

/// What attention adds to the residual. `residual`: the deviation of the weight behind it.
constexpr tensor attention_part(model& net, tensor x, const transformer& t, long layer, double residual) {
  const dimension heads{"heads", t.heads * t.value_depth()}, embedding{"embedding", t.width};
  const tensor together = t.latent.keys > 0 ? decoder_detail::latent_heads(net, x, t, layer)
                          : t.kv_heads > 0  ? decoder_detail::grouped_heads(net, x, t, layer)
                                            : decoder_detail::heads_of_their_own(net, x, t, layer);
  return dropped(projected(net, together, t, t.names.out, heads, embedding, t.out_bias, residual), t.residual_dropout);
}

}  // namespace cfp::families
