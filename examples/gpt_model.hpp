// GPT-2 as an ordinary function on tensors; parameters bear the names of public checkpoints.
#pragma once

#include <cfp/model/differentiate.hpp>
#include <cfp/model/refine.hpp>
#include <cfp/op/attention.hpp>
#include <cfp/op/dropout.hpp>
#include <cfp/op/normalization.hpp>
#include <cfp/op/softmax.hpp>

#include <cmath>
#include <string>

struct gpt_config {
  long layers = 12, heads = 12, width = 768, vocabulary = 50304, positions = 1024;
  long hidden = 0;          ///< 0: 4 width
  double epsilon = 1e-5;
  double deviation = 0.02;  ///< of the initial weights
  double embedding_dropout = 0, attention_dropout = 0, residual_dropout = 0;  ///< shares of elements
  long batch = 4, sequence = 128;

  constexpr long inner() const { return hidden > 0 ? hidden : 4 * width; }
};

constexpr cfp::tensor gpt_norm(cfp::model& net, cfp::tensor x, const gpt_config& c) {
  const double per = 1.0 / static_cast<double>(c.width);
  const cfp::tensor weight = net.weight("weight", {{"embedding", c.width}}, {1.0});
  const cfp::tensor shift = net.weight("bias", {{"embedding", c.width}}, {0.0});
  const cfp::tensor sum = cfp::norm_sum(x), square = cfp::norm_square(x, sum, per);
  return cfp::layer_norm(x, sum, square, weight, shift, per, c.epsilon);
}

/// Dropout, where the model has any.
constexpr cfp::tensor dropped(cfp::tensor x, double share) { return share > 0 ? cfp::dropout(x, share) : x; }

constexpr cfp::tensor gpt_linear(cfp::model& net, cfp::tensor x, std::string_view name, cfp::dimension in,
                                 cfp::dimension out, double deviation) {
  const cfp::tensor weight = net.weight(cfp::model::join(name, "weight"), {in, out}, {0.0, deviation});
  const cfp::tensor bias = net.weight(cfp::model::join(name, "bias"), {out}, {0.0});
  return cfp::bias(cfp::linear(x, weight), bias);
}

/// Attention and what surrounds it, the residual included. `scale` multiplies the scores, `residual` is the deviation of
/// the projection into the residual.
constexpr cfp::tensor gpt_attention(cfp::model& net, cfp::tensor x, const gpt_config& c, std::string_view layer, double scale, double residual) {
  const cfp::dimension embedding{"embedding", c.width};
  net.scope(cfp::model::join(layer, "ln_1"));
  const cfp::tensor normed = gpt_norm(net, x, c);
  net.scope(cfp::model::join(layer, "attn"));
  const cfp::tensor fused = gpt_linear(net, normed, "c_attn", embedding, {"qkv", 3 * c.width}, c.deviation);
  const auto [q, k, v] = cfp::split_qkv(fused, cfp::size_of{"three", 3}, cfp::size_of{"heads", c.heads});
  const cfp::tensor score = cfp::scores(q, k);
  const cfp::tensor max = cfp::masked_max(score, scale, cfp::causal), sum = cfp::masked_sum(score, max, scale, cfp::causal);
  const cfp::tensor share = dropped(cfp::masked_softmax(score, max, sum, scale, cfp::causal), c.attention_dropout);
  const cfp::tensor heads = cfp::merge_heads(cfp::weighted_sum(share, v));
  return cfp::add(x, dropped(gpt_linear(net, heads, "c_proj", {"heads", c.width}, embedding, residual), c.residual_dropout));
}

constexpr cfp::tensor gpt_mlp(cfp::model& net, cfp::tensor x, const gpt_config& c, std::string_view layer, double residual) {
  const cfp::dimension embedding{"embedding", c.width}, hidden{"hidden", c.inner()};
  net.scope(cfp::model::join(layer, "ln_2"));
  const cfp::tensor middle = gpt_norm(net, x, c);
  net.scope(cfp::model::join(layer, "mlp"));
  const cfp::tensor up = gpt_linear(net, middle, "c_fc", embedding, hidden, c.deviation);
  return cfp::add(x, dropped(gpt_linear(net, cfp::gelu(up), "c_proj", hidden, embedding, residual), c.residual_dropout));
}

/// One transformer block: what the compiler checks and what is trained.
constexpr cfp::tensor gpt_block(cfp::model& net, cfp::tensor x, const gpt_config& c, std::string_view layer, double scale,
                                double residual) {
  return gpt_mlp(net, gpt_attention(net, x, c, layer, scale, residual), c, layer, residual);
}

/// The mean cross entropy of the targets.
inline cfp::tensor gpt_loss(cfp::model& net, cfp::tensor logits, cfp::tensor targets) {
  const cfp::tensor max = cfp::logits_max(logits), sum = cfp::logits_sum(logits, max);
  const double rows = static_cast<double>(net.size(targets, 0) * net.size(targets, 1));
  return cfp::cross_entropy(logits, targets, max, sum, 1.0 / rows);
}

/// What an input of indices holds: whole numbers below `bound`.
inline cfp::tensor indices(cfp::model& net, std::string_view label, std::initializer_list<cfp::dimension> dims, long bound) {
  return net.input(label, dims, cfp::element::index, {0, 0, bound});
}

/// GPT-2 with layers of the caller's choice: `layer(net, x, number, scale, residual)`.
template <class Layer>
cfp::tensor gpt_of(cfp::model& net, const gpt_config& c, Layer&& layer) {
  const cfp::dimension batch{"batch", c.batch}, sequence{"sequence", c.sequence}, embedding{"embedding", c.width};
  const cfp::tensor tokens = indices(net, "tokens", {batch, sequence}, c.vocabulary);
  const cfp::tensor targets = indices(net, "targets", {batch, sequence}, c.vocabulary);
  const cfp::tensor positions = indices(net, "positions", {sequence}, c.positions);
  const cfp::tensor wte = net.weight("wte.weight", {{"vocabulary", c.vocabulary}, embedding}, {0, c.deviation});
  const cfp::tensor wpe = net.weight("wpe.weight", {{"positions", c.positions}, embedding}, {0, c.deviation});
  const cfp::tensor words = cfp::lookup(wte, tokens);
  cfp::tensor x = dropped(cfp::add_rows(words, cfp::lookup(wpe, positions)), c.embedding_dropout);

  const double scale = 1.0 / std::sqrt(static_cast<double>(c.width / c.heads));
  const double residual = c.deviation / std::sqrt(2.0 * static_cast<double>(c.layers));
  for (long l = 0; l < c.layers; ++l) x = layer(net, x, l, scale, residual);
  net.scope("ln_f");
  const cfp::tensor last = gpt_norm(net, x, c);
  net.scope("");
  return gpt_loss(net, cfp::dense(last, wte), targets);
}

inline cfp::graph gpt(const gpt_config& c) {
  cfp::model net;
  net.recorded.loss = gpt_of(net, c, [&](cfp::model& m, cfp::tensor x, long l, double scale, double residual) {
                        return gpt_block(m, x, c, "h." + std::to_string(l), scale, residual);
                      }).id;
  return net.recorded;
}
