// T5 as an ordinary function on tensors: an encoder and a decoder that reads it by cross attention; positions are a
// learned table of distances, shared by the layers of a stack. Parameters bear the names and shapes of public
// checkpoints.
#pragma once

#include <cfp/families/decoder.hpp>

#include <algorithm>

namespace cfp::inline v0_1::families {

struct t5_config {
  long layers = 6, heads = 8, depth = 64, width = 512, hidden = 2048, vocabulary = 32128, buckets = 32, farthest = 128;
  double epsilon = 1e-6, dropout = 0;
  bool gated = false;  ///< GEGLU in the place of ReLU
  bool tied = true;    ///< the head's weight is that of the words
  long batch = 4, sequence = 32;
  bool folded = false;           ///< of many equal layers few are written (`repeat_layers`)
  bool ignored_targets = false;  ///< targets may be `ignored_target`, and then do not count
};

/// What its parts share with decoders: norms, and weights without biases.
constexpr transformer norms_of(const t5_config& c) {
  transformer t;
  t.width = c.width;
  t.norm = norm_kind::rms;
  t.epsilon = c.epsilon;
  return t;
}
constexpr tensor t5_linear(model& net, tensor x, std::string_view name, dimension out, dimension in, double deviation) {
  return projected(net, x, {}, name, in, out, false, deviation);
}

/// The bucket of a distance key - query, as T5 counts them: small distances one each, larger ones on a log scale.
inline std::int32_t t5_bucket(long distance, bool both_ways, long buckets, long farthest) {
  long bucket = 0, n = -distance;
  if (both_ways) {
    buckets /= 2;
    if (n < 0) bucket = buckets, n = -n;
  } else if (n < 0) {
    n = 0;
  }
  const long exact = buckets / 2;
  if (n < exact) return static_cast<std::int32_t>(bucket + n);
  const double share = std::log(static_cast<double>(n) / static_cast<double>(exact)) /
                       std::log(static_cast<double>(farthest) / static_cast<double>(exact));
  return static_cast<std::int32_t>(
      bucket + std::min(buckets - 1, exact + static_cast<long>(share * static_cast<double>(buckets - exact))));
}

/// All buckets of a stack, query by key.
inline std::vector<std::int32_t> t5_buckets(const t5_config& c, bool encoder) {
  std::vector<std::int32_t> out;
  for (long q = 0; q < c.sequence; ++q)
    for (long k = 0; k < c.sequence; ++k) out.push_back(t5_bucket(k - q, encoder, c.buckets, c.farthest));
  return out;
}

/// `positions`: what is added to the scores (none for cross attention); `memory`: where keys and values come from.
inline tensor t5_attention(model& net, tensor x, tensor memory, const tensor* positions, const t5_config& c,
                           const std::string& layer, const char* kind, double reach) {
  const dimension embedding{"embedding", c.width}, inner{"heads", c.heads * c.depth};
  const size_of heads{"heads", c.heads};
  const double narrow = 1 / std::sqrt(static_cast<double>(c.width)),
               in = 1 / std::sqrt(static_cast<double>(c.heads * c.depth));
  net.scope(layer + ".layer_norm");
  const tensor normed = normalised(net, x, norms_of(c));
  const tensor from = memory.id == x.id ? normed : memory;
  net.scope(layer + "." + kind);
  const tensor q = split_heads(
      t5_linear(net, normed, "q", inner, embedding, narrow / std::sqrt(static_cast<double>(c.depth))), heads);
  const tensor k = split_heads(t5_linear(net, from, "k", inner, embedding, narrow), heads);
  const tensor v = split_heads(t5_linear(net, from, "v", inner, embedding, narrow), heads);
  tensor score = scores(q, k);
  if (positions != nullptr) score = add_positions(score, *positions);
  const tensor max = masked_max(score, 1.0, reach), sum = masked_sum(score, max, 1.0, reach);
  const tensor together = merge_heads(weighted_sum(dropped(masked_softmax(score, max, sum, 1.0, reach), c.dropout), v));
  return add(x, dropped(t5_linear(net, together, "o", embedding, inner, in), c.dropout));
}

inline tensor t5_mlp(model& net, tensor x, const t5_config& c, const std::string& layer) {
  const dimension embedding{"embedding", c.width}, hidden{"hidden", c.hidden};
  net.scope(layer + ".layer_norm");
  const tensor normed = normalised(net, x, norms_of(c));
  net.scope(layer + ".DenseReluDense");
  const auto wide = [&](std::string_view name) {
    return t5_linear(net, normed, name, hidden, embedding, 1 / std::sqrt(static_cast<double>(c.width)));
  };
  const tensor first = wide(c.gated ? "wi_0" : "wi");
  const tensor inner = c.gated ? gated_gelu(first, wide("wi_1")) : relu(first), middle = dropped(inner, c.dropout);
  return add(x, dropped(t5_linear(net, middle, "wo", embedding, hidden, 1 / std::sqrt(static_cast<double>(c.hidden))),
                        c.dropout));
}

inline graph t5(const t5_config& c) {
  model net;
  const dimension batch{"batch", c.batch}, source{"source", c.sequence}, sequence{"sequence", c.sequence},
      embedding{"embedding", c.width};
  const tensor tokens = indices(net, "tokens", {batch, source}, c.vocabulary);
  const tensor decoder_tokens = indices(net, "decoder_tokens", {batch, sequence}, c.vocabulary);
  const tensor targets =
      net.input("targets", {batch, sequence}, element::index, targets_below(c.vocabulary, c.ignored_targets));
  const tensor shared = net.weight("shared.weight", {{"vocabulary", c.vocabulary}, embedding}, {0, 1.0});
  const auto table = [&](const std::string& stack, dimension queries, std::string_view input) {
    const tensor distances = indices(net, input, {queries, {"~keys", c.sequence}}, c.buckets);
    return lookup(
        net.weight(stack + ".block.0.layer.0.SelfAttention.relative_attention_bias.weight",
                   {{"buckets", c.buckets}, {"heads", c.heads}}, {0, 1 / std::sqrt(static_cast<double>(c.width))}),
        distances);
  };
  const tensor around = table("encoder", source, "distances");
  tensor x = dropped(lookup(shared, tokens), c.dropout);
  repeat_layers(net, c.layers, 1, c.folded, [&](long l) {
    const std::string layer = "encoder.block." + std::to_string(l) + ".layer.";
    x = t5_attention(net, x, x, &around, c, layer + "0", "SelfAttention", everywhere);
    x = t5_mlp(net, x, c, layer + "1");
  });
  net.scope("encoder.final_layer_norm");
  const tensor memory = dropped(normalised(net, x, norms_of(c)), c.dropout);
  net.scope("");
  const tensor behind = table("decoder", sequence, "decoder_distances");
  tensor y = dropped(lookup(shared, decoder_tokens), c.dropout);
  repeat_layers(net, c.layers, 1, c.folded, [&](long l) {
    const std::string layer = "decoder.block." + std::to_string(l) + ".layer.";
    y = t5_attention(net, y, y, &behind, c, layer + "0", "SelfAttention", causal);
    y = t5_attention(net, y, memory, nullptr, c, layer + "1", "EncDecAttention", everywhere);
    y = t5_mlp(net, y, c, layer + "2");
  });
  net.scope("decoder.final_layer_norm");
  const tensor last = dropped(normalised(net, y, norms_of(c)), c.dropout);
  net.scope("");
  const double narrow = 1 / std::sqrt(static_cast<double>(c.width));
  const tensor head =
      c.tied ? shared : net.weight("lm_head.weight", {{"vocabulary", c.vocabulary}, embedding}, {0, narrow});
  const tensor logits = dense(last, head);
  net.recorded.loss = mean_cross_entropy(c.tied ? scaled(logits, narrow) : logits, targets).id;
  return net.recorded;
}

}  // namespace cfp::families
