// A decoder of any public family as an ordinary function on tensors, by its description; parameters bear the names and
// shapes of public checkpoints.
#pragma once

#include <cfp/core/bad_input.hpp>
#include <cfp/families/decoder_layer.hpp>
#include <cfp/families/experts.hpp>
#include <cfp/model/differentiate.hpp>
#include <cfp/model/equal_layers.hpp>
#include <cfp/model/loss.hpp>
#include <cfp/model/refine.hpp>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace cfp::inline v0_1::families {

/// What an input of indices holds: whole numbers below `bound`.
inline tensor indices(model& net, std::string_view label, std::initializer_list<dimension> dims, long bound) {
  return net.input(label, dims, element::index, {0, 0, bound});
}

namespace decoder_detail {

// What the first layer is given: `at` are the places of words, where these are looked up.
inline tensor embedded(model& net, const transformer& t, tensor words, tensor tokens, tensor at) {
  const auto table = [&](std::string_view name, std::string_view rows, long n) {
    return net.weight(model::join(name, "weight"), {{rows, n}, {"embedding", t.width}}, {0, t.deviation});
  };
  tensor x{};
  if (t.position == position_kind::learned) {
    const tensor positions = table(t.names.positions, "positions", t.positions + t.skipped_positions);
    const tensor found = lookup(words, tokens), placed = lookup(positions, at);
    x = t.packed ? add(found, placed) : add_rows(found, placed);
  } else {
    x = lookup(words, tokens);
  }
  if (t.token_kinds > 0) {
    const tensor kinds = table(t.names.kinds, "kinds", t.token_kinds);
    const tensor of_tokens = indices(net, "token_kinds", {{"batch", t.batch}, {"sequence", t.sequence}}, t.token_kinds);
    x = add(x, lookup(kinds, of_tokens));
  }
  if (t.word_scale != 1) x = scaled(x, t.word_scale);
  if (t.word_norm) {
    net.scope(t.names.word_norm);
    x = normalised(net, x, t);
    net.scope("");
  }
  return dropped(x, t.embedding_dropout);
}

// The same of images.
inline tensor embedded_image(model& net, const transformer& t) {
  const image_form& i = t.image;
  const dimension batch{"batch", t.batch}, sequence{"sequence", i.rows()}, embedding{"embedding", t.width},
      channel{"channel", i.channels}, row{"row", i.patch}, column{"column", i.patch};
  const tensor patches = net.input("patches", {batch, sequence, channel, row, column}, element::real, {0, 1.0});
  const auto weight = [&](std::string_view name, std::initializer_list<dimension> dims, double deviation) {
    return net.weight(name, dims, {0, deviation});
  };
  const tensor seen = patch_dense(
      patches, weight(model::join(t.names.words, "weight").view(), {embedding, channel, row, column}, t.deviation));
  const tensor rows = bias(seen, weight(model::join(t.names.words, "bias").view(), {embedding}, 0));
  const tensor x = first_replaced(rows, weight(t.names.first, {embedding}, t.deviation));
  return dropped(add_rows(x, weight(t.names.positions, {sequence, embedding}, t.deviation)), t.embedding_dropout);
}

// What a head that says which tokens were hidden makes of the last layer's result.
inline tensor transformed(model& net, tensor x, const transformer& t) {
  net.scope(t.names.head);
  const dimension embedding{"embedding", t.width}, made{"transformed", t.width};
  const tensor y = activated(projected(net, x, t, t.names.transform, embedding, made, true, t.deviation), t.activation);
  net.scope(model::join(t.names.head, t.names.transform_norm));
  return net.renamed(normalised(net, y, t, made), "transformed", "embedding");
}

// The MLP that every token goes through beside its experts.
inline tensor beside_experts(model& net, tensor x, const transformer& t, std::string_view layer, double residual) {
  const experts_form& e = t.experts;
  transformer of_mlp = t;
  of_mlp.hidden = e.shared;
  const auto called = model::join(model::join(layer, e.called).view(), e.beside);
  net.scope(called);
  const tensor y = mlp_part(net, x, of_mlp, residual);
  if (!e.shared_gate) return y;
  net.scope("");
  const tensor gate =
      net.weight(std::string(called.view()) + "_gate.weight", {{"gate", 1}, {"embedding", t.width}}, {0, t.deviation});
  return gated_rows(y, dense(x, gate));
}

// Attention in pieces is that of causal texts alone.
inline void check_pieces(const transformer& t) {
  if (t.pieces == 0) return;
  const std::string asked = "attention in " + std::to_string(t.pieces) + " pieces: ";
  if (t.pieces < 0 || t.sequence % t.pieces != 0)
    throw bad_input(asked + "they must divide the sequence, of " + std::to_string(t.sequence) + " tokens");
  const char* const why = t.sees_ahead || t.image.size > 0      ? "every token sees those behind it"
                          : t.position == position_kind::slopes ? "scores fall with distance (ALiBi)"
                          : t.latent.keys > 0                   ? "keys are latent"
                          : t.packed                            ? "rows are of several documents"
                                                                : nullptr;
  if (why != nullptr) throw bad_input(asked + "in this model " + why + "; leave the pieces out");
}

}  // namespace decoder_detail

/// With layers of the caller's choice: `layer(net, x, number)`.
template <class Layer>
tensor decoder_of(model& net, const transformer& t, Layer&& layer) {
  decoder_detail::check_pieces(t);
  const dimension batch{"batch", t.batch}, sequence{"sequence", t.sequence}, embedding{"embedding", t.width},
      vocabulary{"vocabulary", t.vocabulary};
  const filling below = targets_below(t.vocabulary, t.ignored_targets);
  tensor x{}, words{}, targets{};
  if (t.image.size > 0) {
    targets = net.input("targets", {batch}, element::index, below);
    x = decoder_detail::embedded_image(net, t);
  } else {
    const tensor tokens = indices(net, "tokens", {batch, sequence}, t.vocabulary);
    targets = net.input("targets", {batch, sequence}, element::index, below);
    const auto places = [&](std::initializer_list<dimension> dims) {
      return indices(net, "positions", dims, t.positions + t.skipped_positions);
    };
    const bool learned = t.position == position_kind::learned;
    const tensor at = !learned ? tokens : t.packed ? places({batch, sequence}) : places({sequence});
    words = net.weight(model::join(t.names.words, "weight"), {vocabulary, embedding}, {0, t.deviation});
    x = decoder_detail::embedded(net, t, words, tokens, at);
  }
  const long unlike = std::min(t.experts.dense_layers, t.layers);  // the first
  for (long l = 0; l < unlike; ++l) x = layer(net, x, l);
  repeat_layers(net, t.layers - unlike, t.period, t.folded, [&](long l) { x = layer(net, x, unlike + l); });
  if (t.last_norm) {
    net.scope(t.names.last_norm);
    x = normalised(net, x, t);
  }
  if (t.image.size > 0) x = first_row(x);
  if (t.head_transform) x = decoder_detail::transformed(net, x, t);
  net.scope(t.names.head);
  const tensor head = t.tied ? words : net.weight("weight", {vocabulary, embedding}, {0, t.deviation});
  const tensor shift = t.head_bias ? net.weight("bias", {vocabulary}, {0.0}) : head;
  net.scope("");
  tensor logits = dense(x, head);
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
      if (t.experts.balance != 0) balance.push_back(r.balance);
      return t.experts.shared > 0 ? add(r.y, decoder_detail::beside_experts(of, y, t, name, residual)) : r.y;
    });
  });
  return with_balance(net, loss, balance);
}

}  // namespace cfp::families
