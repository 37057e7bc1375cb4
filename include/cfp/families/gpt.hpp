// GPT-2 as an ordinary function on tensors; parameters bear the names of public checkpoints.
#pragma once

#include <cfp/families/decoder.hpp>
#include <cfp/model/differentiate.hpp>
#include <cfp/model/equal_layers.hpp>
#include <cfp/model/loss.hpp>
#include <cfp/model/refine.hpp>
#include <cfp/op/attention.hpp>
#include <cfp/op/dropout.hpp>
#include <cfp/op/normalization.hpp>
#include <cfp/op/softmax.hpp>

#include <cmath>
#include <string>

namespace cfp::inline v0_1::families {

struct gpt_config {
  long layers = 12, heads = 12, width = 768, vocabulary = 50304, positions = 1024;
  long hidden = 0;  ///< 0: 4 width
  double epsilon = 1e-5;
  double deviation = 0.02;                                                    ///< of the initial weights
  double embedding_dropout = 0, attention_dropout = 0, residual_dropout = 0;  ///< shares of elements
  long batch = 4, sequence = 128;
  bool folded = false;           ///< of many equal layers few are written (`repeat_layers`)
  long period = 1;               ///< layers are equal every so many
  bool ignored_targets = false;  ///< targets may be `ignored_target`, and then do not count

  constexpr long inner() const { return hidden > 0 ? hidden : 4 * width; }
};

constexpr tensor gpt_norm(model& net, tensor x, const gpt_config& c) {
  const double per = 1.0 / static_cast<double>(c.width);
  const tensor weight = net.weight("weight", {{"embedding", c.width}}, {1.0});
  const tensor shift = net.weight("bias", {{"embedding", c.width}}, {0.0});
  const tensor sum = norm_sum(x), square = norm_square(x, sum, per);
  return layer_norm(x, sum, square, weight, shift, per, c.epsilon);
}

constexpr tensor gpt_linear(model& net, tensor x, std::string_view name, dimension in, dimension out,
                            double deviation) {
  const tensor weight = net.weight(model::join(name, "weight"), {in, out}, {0.0, deviation});
  const tensor bias = net.weight(model::join(name, "bias"), {out}, {0.0});
  return cfp::bias(linear(x, weight), bias);
}

/// Attention and what surrounds it, the residual included. `scale` multiplies the scores, `residual` is the deviation
/// of the projection into the residual.
constexpr tensor gpt_attention(model& net, tensor x, const gpt_config& c, std::string_view layer, double scale,
                               double residual) {
  const dimension embedding{"embedding", c.width};
  net.scope(model::join(layer, "ln_1"));
  const tensor normed = gpt_norm(net, x, c);
  net.scope(model::join(layer, "attn"));
  const tensor fused = gpt_linear(net, normed, "c_attn", embedding, {"qkv", 3 * c.width}, c.deviation);
  const auto [q, k, v] = split_qkv(fused, size_of{"three", 3}, size_of{"heads", c.heads});
  const tensor score = scores(q, k);
  const tensor max = masked_max(score, scale, causal), sum = masked_sum(score, max, scale, causal);
  const tensor share = dropped(masked_softmax(score, max, sum, scale, causal), c.attention_dropout);
  const tensor heads = merge_heads(weighted_sum(share, v));
  return add(x, dropped(gpt_linear(net, heads, "c_proj", {"heads", c.width}, embedding, residual), c.residual_dropout));
}

constexpr tensor gpt_mlp(model& net, tensor x, const gpt_config& c, std::string_view layer, double residual) {
  const dimension embedding{"embedding", c.width}, hidden{"hidden", c.inner()};
  net.scope(model::join(layer, "ln_2"));
  const tensor middle = gpt_norm(net, x, c);
  net.scope(model::join(layer, "mlp"));
  const tensor up = gpt_linear(net, middle, "c_fc", embedding, hidden, c.deviation);
  return add(x, dropped(gpt_linear(net, gelu(up), "c_proj", hidden, embedding, residual), c.residual_dropout));
}

/// One transformer block: what the compiler checks and what is trained.
constexpr tensor gpt_block(model& net, tensor x, const gpt_config& c, std::string_view layer, double scale,
                           double residual) {
  return gpt_mlp(net, gpt_attention(net, x, c, layer, scale, residual), c, layer, residual);
}

/// GPT-2 with layers of the caller's choice: `layer(net, x, number, scale, residual)`.
template <class Layer>
tensor gpt_of(model& net, const gpt_config& c, Layer&& layer) {
  const dimension batch{"batch", c.batch}, sequence{"sequence", c.sequence}, embedding{"embedding", c.width};
  const tensor tokens = indices(net, "tokens", {batch, sequence}, c.vocabulary);
  const tensor targets =
      net.input("targets", {batch, sequence}, element::index, targets_below(c.vocabulary, c.ignored_targets));
  const tensor positions = indices(net, "positions", {sequence}, c.positions);
  const tensor wte = net.weight("wte.weight", {{"vocabulary", c.vocabulary}, embedding}, {0, c.deviation});
  const tensor wpe = net.weight("wpe.weight", {{"positions", c.positions}, embedding}, {0, c.deviation});
  const tensor words = lookup(wte, tokens);
  tensor x = dropped(add_rows(words, lookup(wpe, positions)), c.embedding_dropout);

  const double scale = 1.0 / std::sqrt(static_cast<double>(c.width / c.heads));
  const double residual = c.deviation / std::sqrt(2.0 * static_cast<double>(c.layers));
  repeat_layers(net, c.layers, c.period, c.folded, [&](long l) { x = layer(net, x, l, scale, residual); });
  net.scope("ln_f");
  const tensor last = gpt_norm(net, x, c);
  net.scope("");
  return mean_cross_entropy(dense(last, wte), targets);
}

inline graph gpt(const gpt_config& c) {
  model net;
  net.recorded.loss = gpt_of(net, c, [&](model& m, tensor x, long l, double scale, double residual) {
                        return gpt_block(m, x, c, "h." + std::to_string(l), scale, residual);
                      }).id;
  return net.recorded;
}

}  // namespace cfp::families
