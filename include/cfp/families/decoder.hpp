// A decoder of any public family as an ordinary function on tensors, by its description; parameters bear the names and
// shapes of public checkpoints.
#pragma once

#include <cfp/families/decoder_layer.hpp>
#include <cfp/families/experts.hpp>
#include <cfp/model/differentiate.hpp>
#include <cfp/model/equal_layers.hpp>
#include <cfp/model/loss.hpp>
#include <cfp/model/refine.hpp>

#include <cmath>
#include <string>
#include <vector>

namespace cfp::inline v0_1::families {

/// What an input of indices holds: whole numbers below `bound`.
inline tensor indices(model& net, std::string_view label, std::initializer_list<dimension> dims, long bound) {
  return net.input(label, dims, element::index, {0, 0, bound});
}

namespace decoder_detail {

// What the first layer is given: `at` are the places of words, where these are looked up.
inline tensor embedded(model& net, const transformer& t, tensor words, tensor tokens, tensor at) {
  tensor x{};
  if (t.position == position_kind::learned) {
    const tensor table =
        net.weight(model::join(t.names.positions, "weight"),
                   {{"positions", t.positions + t.skipped_positions}, {"embedding", t.width}}, {0, t.deviation});
    const tensor found = lookup(words, tokens);
    x = add_rows(found, lookup(table, at));
  } else {
    x = lookup(words, tokens);
  }
  if (t.word_scale != 1) x = scaled(x, t.word_scale);
  if (t.word_norm) {
    net.scope(t.names.word_norm);
    x = normalised(net, x, t);
    net.scope("");
  }
  return dropped(x, t.embedding_dropout);
}

}  // namespace decoder_detail

/// With layers of the caller's choice: `layer(net, x, number)`.
template <class Layer>
tensor decoder_of(model& net, const transformer& t, Layer&& layer) {
  const dimension batch{"batch", t.batch}, sequence{"sequence", t.sequence}, embedding{"embedding", t.width},
      vocabulary{"vocabulary", t.vocabulary};
  const tensor tokens = indices(net, "tokens", {batch, sequence}, t.vocabulary);
  const tensor targets =
      net.input("targets", {batch, sequence}, element::index, targets_below(t.vocabulary, t.ignored_targets));
  const tensor at = t.position == position_kind::learned
                        ? indices(net, "positions", {sequence}, t.positions + t.skipped_positions)
                        : tokens;
  const tensor words = net.weight(model::join(t.names.words, "weight"), {vocabulary, embedding}, {0, t.deviation});
  tensor x = decoder_detail::embedded(net, t, words, tokens, at);
  repeat_layers(net, t.layers, t.period, t.folded, [&](long l) { x = layer(net, x, l); });
  net.scope(t.names.last_norm);
  const tensor last = normalised(net, x, t);
  net.scope(t.names.head);
  const tensor head = t.tied ? words : net.weight("weight", {vocabulary, embedding}, {0, t.deviation});
  const tensor shift = t.head_bias ? net.weight("bias", {vocabulary}, {0.0}) : head;
  net.scope("");
  tensor logits = dense(last, head);
  if (t.head_bias) logits = bias(logits, shift);
  if (t.logit_scale != 1) logits = scaled(logits, t.logit_scale);
  if (t.logit_cap > 0) logits = soft_cap(logits, t.logit_cap);
  return mean_cross_entropy(logits, targets);
}

inline graph decoder(const transformer& t) {
  model net;
  const double residual = t.deviation / std::sqrt(2.0 * static_cast<double>(t.layers));
  std::vector<tensor> balance;
  const tensor loss = decoder_of(net, t, [&](model& m, tensor x, long l) {
    const std::string name = std::string(t.names.layer) + std::to_string(l);
    if (!t.experts.in_layer(l)) return decoder_layer(m, x, t, name, l, residual);
    return decoder_layer(m, x, t, name, l, residual, [&](model& of, tensor y) {
      of.scope(model::join(name, t.experts.called));
      const experts_result r = experts_layer(of, y, t.experts, t.deviation, residual);
      balance.push_back(r.balance);
      return r.y;
    });
  });
  return with_balance(net, loss, balance);
}

}  // namespace cfp::families
