// LLaMA as an ordinary function on tensors: RMS norm, rotary embedding, grouped-query attention, SwiGLU; parameters bear the
// names and shapes of public checkpoints.
#pragma once

#include "gpt_model.hpp"

struct llama_config {
  long layers = 6, heads = 6, kv_heads = 6, width = 288, hidden = 768, vocabulary = 32000, positions = 256;
  double epsilon = 1e-5, rope = 10000, deviation = 0.02;
  bool tied = true;
  long batch = 4, sequence = 128;
};

constexpr cfp::tensor llama_norm(cfp::model& net, cfp::tensor x, long width, double epsilon) {
  const cfp::tensor weight = net.weight("weight", {{"embedding", width}}, {1.0});
  return cfp::rms_norm(x, cfp::rms_square(x), weight, 1.0 / static_cast<double>(width), epsilon);
}

/// x w^T, without a bias.
constexpr cfp::tensor llama_linear(cfp::model& net, cfp::tensor x, std::string_view name, cfp::dimension out, cfp::dimension in, double deviation) {
  return cfp::dense(x, net.weight(cfp::model::join(name, "weight"), {out, in}, {0.0, deviation}));
}

inline cfp::tensor llama_rotary(cfp::tensor x, const llama_config& c) {
  return cfp::rotary(x, std::log(c.rope), 2.0 * static_cast<double>(c.heads) / static_cast<double>(c.width), cfp::size_of{"half", 2}, cfp::size_of{"out", 2});
}

inline cfp::tensor llama_attention(cfp::model& net, cfp::tensor x, const llama_config& c, const std::string& layer, double residual) {
  const long depth = c.width / c.heads;
  const cfp::dimension embedding{"embedding", c.width}, queries{"heads", c.width}, keys{"heads", c.kv_heads * depth};
  const cfp::size_of kv{"heads", c.kv_heads}, group{"group", c.heads / c.kv_heads};
  const double scale = 1.0 / std::sqrt(static_cast<double>(depth));
  net.scope(layer + ".input_layernorm");
  const cfp::tensor normed = llama_norm(net, x, c.width, c.epsilon);
  net.scope(layer + ".self_attn");
  const cfp::tensor q = llama_linear(net, normed, "q_proj", queries, embedding, c.deviation);
  const cfp::tensor k = cfp::split_heads(llama_linear(net, normed, "k_proj", keys, embedding, c.deviation), kv);
  const cfp::tensor v = cfp::split_heads(llama_linear(net, normed, "v_proj", keys, embedding, c.deviation), kv);
  const auto attend = [&](cfp::tensor score) {
    const cfp::tensor max = cfp::masked_max(score, scale, cfp::causal), sum = cfp::masked_sum(score, max, scale, cfp::causal);
    return cfp::masked_softmax(score, max, sum, scale, cfp::causal);
  };
  const cfp::tensor turned = llama_rotary(k, c);
  cfp::tensor heads;
  if (group.size == 1) {
    const cfp::tensor score = cfp::scores(llama_rotary(cfp::split_heads(q, kv), c), turned);
    heads = cfp::merge_heads(cfp::weighted_sum(attend(score), v));
  } else {
    const cfp::tensor score = cfp::grouped_scores(llama_rotary(cfp::split_groups(q, kv, group), c), turned);
    heads = cfp::merge_groups(cfp::grouped_sum(attend(score), v));
  }
  return cfp::add(x, llama_linear(net, heads, "o_proj", embedding, queries, residual));
}

inline cfp::tensor llama_mlp(cfp::model& net, cfp::tensor x, const llama_config& c, const std::string& layer, double residual) {
  const cfp::dimension embedding{"embedding", c.width}, hidden{"hidden", c.hidden};
  net.scope(layer + ".post_attention_layernorm");
  const cfp::tensor middle = llama_norm(net, x, c.width, c.epsilon);
  net.scope(layer + ".mlp");
  const cfp::tensor gate = llama_linear(net, middle, "gate_proj", hidden, embedding, c.deviation);
  const cfp::tensor up = llama_linear(net, middle, "up_proj", hidden, embedding, c.deviation);
  return cfp::add(x, llama_linear(net, cfp::gated_silu(gate, up), "down_proj", embedding, hidden, residual));
}

/// LLaMA with layers of the caller's choice: `layer(net, x, number, residual)`.
template <class Layer>
cfp::tensor llama_of(cfp::model& net, const llama_config& c, Layer&& layer) {
  const cfp::dimension batch{"batch", c.batch}, sequence{"sequence", c.sequence}, embedding{"embedding", c.width}, vocabulary{"vocabulary", c.vocabulary};
  const cfp::tensor tokens = indices(net, "tokens", {batch, sequence}, c.vocabulary);
  const cfp::tensor targets = indices(net, "targets", {batch, sequence}, c.vocabulary);
  const cfp::tensor words = net.weight("model.embed_tokens.weight", {vocabulary, embedding}, {0, c.deviation});
  cfp::tensor x = cfp::lookup(words, tokens);
  const double residual = c.deviation / std::sqrt(2.0 * static_cast<double>(c.layers));
  for (long l = 0; l < c.layers; ++l) x = layer(net, x, l, residual);
  net.scope("model.norm");
  const cfp::tensor last = llama_norm(net, x, c.width, c.epsilon);
  net.scope("");
  const cfp::tensor head = c.tied ? words : net.weight("lm_head.weight", {vocabulary, embedding}, {0, c.deviation});
  return gpt_loss(net, cfp::dense(last, head), targets);
}

inline cfp::graph llama(const llama_config& c) {
  cfp::model net;
  net.recorded.loss = llama_of(net, c, [&](cfp::model& m, cfp::tensor x, long l, double residual) {
                        const std::string layer = "model.layers." + std::to_string(l);
                        return llama_mlp(m, llama_attention(m, x, c, layer, residual), c, layer, residual);
                      }).id;
  return net.recorded;
}
