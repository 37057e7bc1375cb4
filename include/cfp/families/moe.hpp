// Mixture-of-experts models: GShard's (GPT-2 with experts in every second layer) and Mixtral's (LLaMA with experts in
// every layer). Both dispatch by GShard's einsums, so that shapes are static: an expert takes tokens up to its
// capacity.
#pragma once

#include <cfp/families/llama.hpp>

#include <cfp/op/routing.hpp>

#include <algorithm>

namespace cfp::inline v0_1::families {

struct experts_config {
  long count = 8, choices = 2, hidden = 3072;
  double capacity_factor = 2.0;  ///< places per expert: choices * tokens of a group / experts, times this / choices
  double balance = 0.01;         ///< weight of the balancing loss
  long group = 0;                ///< tokens routed together; a multiple of the sequence; 0: a sequence
  bool gated = false;            ///< SwiGLU experts (Mixtral) instead of GELU
};

/// What a layer of experts adds to the residual, and its balancing loss.
struct experts_result {
  tensor y, balance;
};

inline constexpr op<"(groups joined) s width -> groups (joined s) width"> group_tokens;
inline constexpr op<"groups (joined s) width -> (groups joined) s width"> ungroup_tokens;

/// The expert layer on normed tokens (batch, sequence, width).
inline experts_result experts_layer(model& net, tensor x, const experts_config& e, double deviation, double residual) {
  const long sequence = net.size(x, 1), width = net.size(x, 2);
  const dimension embedding{"embedding", width}, experts{"experts", e.count}, hidden{"hidden", e.hidden};
  const size_of joined{"joined", e.group > sequence ? e.group / sequence : 1};
  const tensor tokens = joined.size > 1 ? group_tokens(x, joined) : x;
  const long groups = net.size(tokens, 0), of_group = net.size(tokens, 1);
  const tensor logits = dense(tokens, net.weight("gate.weight", {experts, embedding}, {0, deviation}));
  const tensor max = logits_max(logits), gates = softmax(logits, max, logits_sum(logits, max));
  const tensor place = queue_places(gates, e.choices);
  const double share = e.capacity_factor * static_cast<double>(of_group) / static_cast<double>(e.count);
  const long places = static_cast<long>(std::clamp(share, 1.0, static_cast<double>(of_group)));
  const size_of capacity{"capacity", places};
  const tensor sent = to_experts(dispatch(place, capacity), tokens);
  const auto weight = [&](std::string_view name, dimension out, dimension in, double d) {
    return net.weight(model::join("experts", model::join(name, "weight")), {experts, out, in}, {0, d});
  };
  const tensor first = expert_dense(sent, weight("w1", hidden, embedding, deviation));
  const tensor inner =
      e.gated ? gated_silu(first, expert_dense(sent, weight("w3", hidden, embedding, deviation))) : gelu(first);
  const tensor answers = expert_dense(inner, weight("w2", embedding, hidden, residual));
  const tensor back = from_experts(combine(gates, place, chosen_sum(gates, place), capacity), answers);
  // mean over groups of experts * sum over experts of (share of first choices) * (mean gate)
  const double n = static_cast<double>(of_group);
  const tensor mass = gate_mass(gates);  // before the other: in what order operands are made, compilers may choose
  const tensor uneven = imbalance(first_choices(place), mass);
  return {joined.size > 1 ? ungroup_tokens(back, joined, size_of{"s", sequence}) : back,
          scaled(uneven, e.balance * static_cast<double>(e.count) / (n * n * static_cast<double>(groups)))};
}

/// The graph of a loss and what layers of experts add to it.
inline graph with_balance(const model& net, tensor loss, const std::vector<tensor>& balance) {
  for (const tensor& b : balance) loss = add(loss, b);
  graph out = net.recorded;
  out.loss = loss.id;
  return out;
}

inline graph gshard(gpt_config c, const experts_config& e) {
  model net;
  c.period = 2;
  std::vector<tensor> balance;
  const tensor loss = gpt_of(net, c, [&](model& m, tensor x, long l, double scale, double residual) {
    const std::string layer = "h." + std::to_string(l);
    x = gpt_attention(m, x, c, layer, scale, residual);
    if (l % 2 == 0) return gpt_mlp(m, x, c, layer, residual);
    m.scope(layer + ".ln_2");
    const tensor middle = gpt_norm(m, x, c);
    m.scope(layer + ".moe");
    const experts_result r = experts_layer(m, middle, e, c.deviation, residual);
    balance.push_back(r.balance);
    return add(x, r.y);
  });
  return with_balance(net, loss, balance);
}

inline graph mixtral(const llama_config& c, const experts_config& e) {
  model net;
  std::vector<tensor> balance;
  const tensor loss = llama_of(net, c, [&](model& m, tensor x, long l, double residual) {
    const std::string layer = "model.layers." + std::to_string(l);
    x = llama_attention(m, x, c, layer, residual);
    m.scope(layer + ".post_attention_layernorm");
    const tensor middle = llama_norm(m, x, c.width, c.epsilon);
    m.scope(layer + ".block_sparse_moe");
    const experts_result r = experts_layer(m, middle, e, c.deviation, residual);
    balance.push_back(r.balance);
    return add(x, r.y);
  });
  return with_balance(net, loss, balance);
}

}  // namespace cfp::families
