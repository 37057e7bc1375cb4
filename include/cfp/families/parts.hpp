// What layers of all families are made of: dropout, norms and projections, as a description says.
#pragma once

#include <cfp/families/transformer.hpp>
#include <cfp/model/trace.hpp>
#include <cfp/op/activation.hpp>
#include <cfp/op/dropout.hpp>
#include <cfp/op/normalization.hpp>

#include <initializer_list>
#include <string_view>

namespace cfp::inline v0_1::families {

/// Dropout, where the model has any.
constexpr tensor dropped(tensor x, double share) { return share > 0 ? dropout(x, share) : x; }

/// Normalised over its last dimension, by the weights of the scope it stands in.
constexpr tensor normalised(model& net, tensor x, const transformer& t, dimension over,
                            std::string_view weight_name = "weight") {
  const double per = 1.0 / static_cast<double>(over.size);
  const bool plus_one = t.norm == norm_kind::rms_plus_one;
  const tensor weight = net.weight(weight_name, {over}, {plus_one ? 0.0 : 1.0});
  if (t.norm == norm_kind::rms || plus_one)
    return rms_norm(x, rms_square(x), plus_one ? cfp::plus_one(weight) : weight, per, t.epsilon);
  if (t.norm == norm_kind::layer_unbiased) {
    const tensor sum = norm_sum(x), square = norm_square(x, sum, per);
    return layer_norm_unbiased(x, sum, square, weight, per, t.epsilon);
  }
  const tensor shift = net.weight("bias", {over}, {0.0});
  const tensor sum = norm_sum(x), square = norm_square(x, sum, per);
  return layer_norm(x, sum, square, weight, shift, per, t.epsilon);
}
constexpr tensor normalised(model& net, tensor x, const transformer& t) {
  return normalised(net, x, t, {"embedding", t.width});
}

/// x times a weight of the scope, and its bias.
constexpr tensor projected(model& net, tensor x, const transformer& t, std::string_view name, dimension in,
                           dimension out, bool biased, double deviation) {
  const std::initializer_list<dimension> stored = {t.in_out ? in : out, t.in_out ? out : in};
  const tensor weight = net.weight(model::join(name, "weight"), stored, {0.0, deviation});
  if (!biased) return t.in_out ? linear(x, weight) : dense(x, weight);
  const tensor shift = net.weight(model::join(name, "bias"), {out}, {0.0});
  return bias(t.in_out ? linear(x, weight) : dense(x, weight), shift);
}

/// What an MLP computes of its one wide projection.
constexpr tensor activated(tensor x, activation_kind by) {
  return by == activation_kind::gelu ? gelu(x) : by == activation_kind::gelu_exact ? gelu_exact(x) : relu(x);
}
/// Of its gate and the other one.
constexpr tensor activated(tensor gate, tensor up, activation_kind by) {
  return by == activation_kind::gated_silu ? gated_silu(gate, up) : gated_gelu(gate, up);
}

}  // namespace cfp::families
