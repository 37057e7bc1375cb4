// A small model as a constexpr function: planned at run time, traced again by the compiler that reads the plan's
// header.
#pragma once

#include <cfp/model/refine.hpp>
#include <cfp/op/attention.hpp>
#include <cfp/op/normalization.hpp>
#include <cfp/op/softmax.hpp>

template <long Hidden>
constexpr cfp::tensor small_model(cfp::model& net) {
  using namespace cfp;
  const dimension batch{"batch", 4}, sequence{"sequence", 8}, width{"width", 16}, hidden{"hidden", Hidden},
      vocabulary{"vocabulary", 32};
  const tensor tokens = net.input("tokens", {batch, sequence}, element::index, {0, 0, 32});
  const tensor table = net.weight("table.weight", {vocabulary, width}, {0, 0.5});
  const tensor x = lookup(table, tokens);
  const tensor fused = linear(x, net.weight("qkv.weight", {width, {"qkv", 48}}, {0, 0.3}));
  const auto [q, k, v] = split_qkv(fused, size_of{"three", 3}, size_of{"heads", 4});
  const tensor score = scores(q, k);
  const tensor most = masked_max(score, 0.5, cfp::causal), sum = masked_sum(score, most, 0.5, cfp::causal);
  const tensor heads = merge_heads(weighted_sum(masked_softmax(score, most, sum, 0.5, cfp::causal), v));
  const tensor y = add(x, linear(heads, net.weight("out.weight", {{"heads", 16}, width}, {0, 0.3})));
  const tensor up = linear(y, net.weight("up.weight", {width, hidden}, {0, 0.3}));
  const tensor z = add(y, linear(gelu(up), net.weight("down.weight", {hidden, width}, {0, 0.3})));
  const tensor logits = dense(z, table);
  const tensor top = logits_max(logits), total = logits_sum(logits, top);
  return cross_entropy(logits, tokens, top, total, 1.0 / 32);
}
