// A layer of a decoder: attention and MLP, as its description says.
#pragma once

#include <cfp/families/attention.hpp>

#include <string_view>

namespace cfp::inline v0_1::families {

/// What the MLP adds to it.
constexpr tensor mlp_part(model& net, tensor x, const transformer& t, double residual) {
  const dimension embedding{"embedding", t.width}, hidden{"hidden", t.inner()};
  const auto wide = [&](std::string_view name) {
    return projected(net, x, t, name, embedding, hidden, t.mlp_bias, t.deviation);
  };
  const tensor gate = wide(t.gated() ? t.names.gate : t.names.up);
  const tensor inner = t.gated() ? activated(gate, wide(t.names.up), t.activation) : activated(gate, t.activation);
  return dropped(projected(net, inner, t, t.names.down, hidden, embedding, t.mlp_bias, residual), t.residual_dropout);
}

/// One layer, with an MLP of the caller's choice: `mlp(net, x)`. `name`: of its parameters; `number`: from 0.
template <class Mlp>
constexpr tensor decoder_layer(model& net, tensor x, const transformer& t, std::string_view name, long number,
                               double residual, const Mlp& mlp_of) {
  const weight_names& n = t.names;
  const auto in = [&](std::string_view part) { net.scope(model::join(name, part)); };
  const auto norm = [&](tensor y, std::string_view part) {
    in(part);
    return normalised(net, y, t);
  };
  const auto attention = [&](tensor y) {
    in(n.attention);
    return attention_part(net, y, t, number, residual);
  };
  const auto mlp = [&](tensor y) { return mlp_of(net, y); };
  if (t.layer == layer_kind::parallel || t.layer == layer_kind::parallel_shared) {
    const tensor first = norm(x, n.attention_norm);
    const tensor second = t.layer == layer_kind::parallel ? norm(x, n.mlp_norm) : first;
    const tensor attended = attention(first);
    return add(add(x, attended), mlp(second));
  }
  const bool after = t.layer == layer_kind::norm_after, before = !after && t.layer != layer_kind::norm_behind,
             behind = !after && t.layer != layer_kind::norm_before;
  const auto add_part = [&](tensor y, auto part, std::string_view norm_before, std::string_view norm_behind) {
    const tensor made = part(before ? norm(y, norm_before) : y);
    const tensor sum = add(y, behind ? norm(made, norm_behind) : made);
    return after ? norm(sum, norm_behind) : sum;
  };
  x = add_part(x, attention, n.attention_norm, n.behind_attention);
  return add_part(x, mlp, n.mlp_norm, n.behind_mlp);
}

/// With that of the description: what the compiler checks and what is trained.
constexpr tensor decoder_layer(model& net, tensor x, const transformer& t, std::string_view name, long number,
                               double residual) {
  return decoder_layer(net, x, t, name, number, residual, [&](model& m, tensor y) {
    if (t.names.mlp.empty()) m.scope(name);
    else m.scope(model::join(name, t.names.mlp));
    return mlp_part(m, y, t, residual);
  });
}

}  // namespace cfp::families
