// A layer of experts, dispatched to by GShard's einsums.
#pragma once

#include <cfp/families/transformer.hpp>
#include <cfp/model/trace.hpp>
#include <cfp/op/catalogue.hpp>
#include <cfp/op/routing.hpp>
#include <cfp/op/softmax.hpp>

#include <algorithm>
#include <string_view>
#include <vector>

namespace cfp::inline v0_1::families {

/// What a layer of experts adds to the residual, and its balancing loss.
struct experts_result {
  tensor y, balance;
};

inline constexpr op<"(groups joined) s width -> groups (joined s) width"> group_tokens;
inline constexpr op<"groups (joined s) width -> (groups joined) s width"> ungroup_tokens;

/// The expert layer on normed tokens (batch, sequence, width).
inline experts_result experts_layer(model& net, tensor x, const experts_form& e, double deviation, double residual) {
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

}  // namespace cfp::families
