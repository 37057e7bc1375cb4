// LLaMA as an ordinary function on tensors: RMS norm, rotary embedding, grouped-query attention, SwiGLU; parameters
// bear the names and shapes of public checkpoints.
#pragma once

#include <cfp/families/gpt.hpp>

namespace cfp::inline v0_1::families {

struct llama_config {
  long layers = 6, heads = 6, kv_heads = 6, width = 288, hidden = 768, vocabulary = 32000, positions = 256;
  double epsilon = 1e-5, rope = 10000, deviation = 0.02;
  bool tied = true;
  long batch = 4, sequence = 128;
  bool folded = false;           ///< of many equal layers few are written (`repeat_layers`)
  bool ignored_targets = false;  ///< targets may be `ignored_target`, and then do not count
};

constexpr tensor llama_norm(model& net, tensor x, long width, double epsilon) {
  const tensor weight = net.weight("weight", {{"embedding", width}}, {1.0});
  return rms_norm(x, rms_square(x), weight, 1.0 / static_cast<double>(width), epsilon);
}

/// x w^T, without a bias.
constexpr tensor llama_linear(model& net, tensor x, std::string_view name, dimension out, dimension in,
                              double deviation) {
  return dense(x, net.weight(model::join(name, "weight"), {out, in}, {0.0, deviation}));
}

inline tensor llama_rotary(tensor x, const llama_config& c) {
  return rotary(x, std::log(c.rope), 2.0 * static_cast<double>(c.heads) / static_cast<double>(c.width),
                size_of{"half", 2}, size_of{"out", 2});
}

inline tensor llama_attention(model& net, tensor x, const llama_config& c, const std::string& layer, double residual) {
  const long depth = c.width / c.heads;
  const dimension embedding{"embedding", c.width}, queries{"heads", c.width}, keys{"heads", c.kv_heads * depth};
  const size_of kv{"heads", c.kv_heads}, group{"group", c.heads / c.kv_heads};
  const double scale = 1.0 / std::sqrt(static_cast<double>(depth));
  net.scope(layer + ".input_layernorm");
  const tensor normed = llama_norm(net, x, c.width, c.epsilon);
  net.scope(layer + ".self_attn");
  const tensor q = llama_linear(net, normed, "q_proj", queries, embedding, c.deviation);
  const tensor k = split_heads(llama_linear(net, normed, "k_proj", keys, embedding, c.deviation), kv);
  const tensor v = split_heads(llama_linear(net, normed, "v_proj", keys, embedding, c.deviation), kv);
  const auto attend = [&](tensor score) {
    const tensor max = masked_max(score, scale, causal), sum = masked_sum(score, max, scale, causal);
    return masked_softmax(score, max, sum, scale, causal);
  };
  const tensor turned = llama_rotary(k, c);
  const tensor score = grouped_scores(llama_rotary(split_groups(q, kv, group), c), turned);
  const tensor heads = merge_groups(grouped_sum(attend(score), v));
  return add(x, llama_linear(net, heads, "o_proj", embedding, queries, residual));
}

inline tensor llama_mlp(model& net, tensor x, const llama_config& c, const std::string& layer, double residual) {
  const dimension embedding{"embedding", c.width}, hidden{"hidden", c.hidden};
  net.scope(layer + ".post_attention_layernorm");
  const tensor middle = llama_norm(net, x, c.width, c.epsilon);
  net.scope(layer + ".mlp");
  const tensor gate = llama_linear(net, middle, "gate_proj", hidden, embedding, c.deviation);
  const tensor up = llama_linear(net, middle, "up_proj", hidden, embedding, c.deviation);
  return add(x, llama_linear(net, gated_silu(gate, up), "down_proj", embedding, hidden, residual));
}

/// LLaMA with layers of the caller's choice: `layer(net, x, number, residual)`.
template <class Layer>
tensor llama_of(model& net, const llama_config& c, Layer&& layer) {
  const dimension batch{"batch", c.batch}, sequence{"sequence", c.sequence}, embedding{"embedding", c.width},
      vocabulary{"vocabulary", c.vocabulary};
  const tensor tokens = indices(net, "tokens", {batch, sequence}, c.vocabulary);
  const tensor targets =
      net.input("targets", {batch, sequence}, element::index, targets_below(c.vocabulary, c.ignored_targets));
  const tensor words = net.weight("model.embed_tokens.weight", {vocabulary, embedding}, {0, c.deviation});
  tensor x = lookup(words, tokens);
  const double residual = c.deviation / std::sqrt(2.0 * static_cast<double>(c.layers));
  repeat_layers(net, c.layers, 1, c.folded, [&](long l) { x = layer(net, x, l, residual); });
  net.scope("model.norm");
  const tensor last = llama_norm(net, x, c.width, c.epsilon);
  net.scope("");
  const tensor head = c.tied ? words : net.weight("lm_head.weight", {vocabulary, embedding}, {0, c.deviation});
  return mean_cross_entropy(dense(last, head), targets);
}

inline graph llama(const llama_config& c) {
  model net;
  net.recorded.loss = llama_of(net, c, [&](model& m, tensor x, long l, double residual) {
                        const std::string layer = "model.layers." + std::to_string(l);
                        return llama_mlp(m, llama_attention(m, x, c, layer, residual), c, layer, residual);
                      }).id;
  return net.recorded;
}

}  // namespace cfp::families
