// A layer of experts, dispatched to by GShard's einsums.
#pragma once

#include <cfp/families/transformer.hpp>
#include <cfp/model/trace.hpp>
#include <cfp/op/activation.hpp>
#include <cfp/op/routing.hpp>
#include <cfp/op/softmax.hpp>

#include <algorithm>
#include <initializer_list>
#include <string_view>
#include <vector>

namespace cfp::inline v0_1::families {

/// What a layer of experts adds to the residual, and its balancing loss.
struct experts_result {
  tensor y, balance;
};

inline constexpr op<"(groups joined) s width -> groups (joined s) width"> group_tokens;
inline constexpr op<"groups (joined s) width -> (groups joined) s width"> ungroup_tokens;

namespace decoder_detail {

// What experts are chosen by: the gates, those that are corrected, those of the best sets.
inline tensor chosen_by(model& net, tensor gates, const experts_form& e) {
  const tensor shift =
      e.corrected ? net.weight(model::join(e.router, "e_score_correction_bias"), {{"experts", e.count}}, {0.0}) : gates;
  const tensor all = e.corrected ? bias(gates, shift) : gates;
  if (e.kept >= e.sets) return all;
  const tensor best = set_max(all, size_of{"sets", e.sets});
  return of_chosen_sets(all, queue_places(e.best_two ? add(best, set_second(all, best)) : best, e.kept));
}

}  // namespace decoder_detail

/// The expert layer on normed tokens (batch, sequence, width).
inline experts_result experts_layer(model& net, tensor x, const experts_form& e, double deviation, double residual) {
  const long sequence = net.size(x, 1), width = net.size(x, 2);
  const dimension embedding{"embedding", width}, experts{"experts", e.count}, hidden{"hidden", e.hidden};
  const size_of joined{"joined", e.group > sequence ? e.group / sequence : 1};
  const tensor tokens = joined.size > 1 ? group_tokens(x, joined) : x;
  const long groups = net.size(tokens, 0), of_group = net.size(tokens, 1);
  const auto weight = [&](std::string_view name, std::initializer_list<dimension> dims, double d) {
    return net.weight(model::join(name, "weight"), dims, {0, d});
  };
  const tensor scored = dense(tokens, weight(e.router, {experts, embedding}, deviation));
  const auto shares = [&] {
    const tensor max = logits_max(scored);
    return softmax(scored, max, logits_sum(scored, max));
  };
  const tensor gates = e.logistic ? logistic(scored) : shares();
  const tensor place = queue_places(decoder_detail::chosen_by(net, gates, e), e.choices);
  const double share = e.capacity_factor * static_cast<double>(of_group) / static_cast<double>(e.count);
  const long places = static_cast<long>(std::clamp(share, 1.0, static_cast<double>(of_group)));
  const size_of capacity{"capacity", places};
  const tensor sent = to_experts(dispatch(place, capacity), tokens);
  const auto of_experts = [&](tensor y, std::string_view name, dimension out, dimension in, double d) {
    return expert_dense(y, weight(model::join(e.expert, name).view(), {experts, out, in}, d));
  };
  const tensor first = of_experts(sent, e.gate, hidden, embedding, deviation);
  const tensor inner = e.gated ? gated_silu(first, of_experts(sent, e.up, hidden, embedding, deviation)) : gelu(first);
  const tensor answers = of_experts(inner, e.down, embedding, hidden, residual);
  const tensor back = from_experts(
      e.normalised ? combine(gates, place, chosen_sum(gates, place), capacity) : combine_gates(gates, place, capacity),
      answers);
  const auto answered = [&] {
    const tensor apart = joined.size > 1 ? ungroup_tokens(back, joined, size_of{"s", sequence}) : back;
    return e.scale != 1 ? scaled(apart, e.scale) : apart;
  };
  if (e.balance == 0) return {answered(), {}};
  // mean over groups of experts * sum over experts of (share of first choices) * (mean gate)
  const double n = static_cast<double>(of_group);
  const tensor mass = gate_mass(gates);  // before the other: in what order operands are made, compilers may choose
  const tensor uneven = imbalance(first_choices(place), mass);
  return {answered(), scaled(uneven, e.balance * static_cast<double>(e.count) / (n * n * static_cast<double>(groups)))};
}

/// The graph of a loss and what layers of experts add to it.
inline graph with_balance(const model& net, tensor loss, const std::vector<tensor>& balance) {
  for (const tensor& b : balance) loss = add(loss, b);
  graph out = net.recorded;
  out.loss = loss.id;
  return out;
}

}  // namespace cfp::families
