// Where public checkpoints have the weights of a decoder: parts that are kept apart here are joined there, experts that
// are stacked here lie there one by one.
#pragma once

#include <cfp/families/transformer.hpp>
#include <cfp/model/stored_weight.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cfp::inline v0_1::families {

namespace decoder_detail {

/// A part of a joined weight, whose rows come in groups: of each group `all` rows, ours behind `before` others. `name`:
/// "qkv_proj.q" of the weight qkv_proj.
struct joined_part {
  std::string_view name;
  long groups, before, all;

  std::optional<stored_weight> of(const std::string& label, const std::vector<long>& shape) const {
    const std::size_t dot = name.find('.'), at = label.find("." + std::string(name) + ".");
    if (dot == std::string_view::npos || at == std::string::npos) return std::nullopt;
    const long width = shape.size() > 1 ? shape[1] : 1;
    stored_weight out;
    out.tensors = {label.substr(0, at + 1 + dot) + label.substr(at + 1 + name.size())};
    out.shape = shape;
    out.shape[0] = groups * all;
    out.first = before * width;
    out.walk = {{groups, all * width}, {shape[0] / groups * width, 1}};
    return out;
  }
};

inline std::vector<joined_part> joined_parts(const transformer& t) {
  const weight_names& n = t.names;
  const long keys = t.kv_heads > 0 ? t.kv_heads : t.heads, groups = t.joined_by_group ? keys : 1;
  const long query = t.heads / groups * t.head_depth(), key = keys / groups * t.head_depth(), all = query + 2 * key;
  std::vector<joined_part> out;
  if (t.parts_joined)
    out = {{n.query, groups, 0, all},
           {n.key, groups, query, all},
           {n.value, groups, query + key, all},
           {n.gate, 1, 0, 2 * t.inner()},
           {n.up, 1, t.inner(), 2 * t.inner()}};
  if (const latent_form& a = t.latent; a.keys > 0) {
    const long in_query = a.still + a.turned, of_token = a.keys + a.turned, in_pair = a.still + a.values;
    out.insert(out.end(), {{"q_proj.nope", t.heads, 0, in_query},
                           {"q_proj.rope", t.heads, a.still, in_query},
                           {"q_b_proj.nope", t.heads, 0, in_query},
                           {"q_b_proj.rope", t.heads, a.still, in_query},
                           {"kv_a_proj_with_mqa.latent", 1, 0, of_token},
                           {"kv_a_proj_with_mqa.rope", 1, a.keys, of_token},
                           {"kv_b_proj.k", t.heads, 0, in_pair},
                           {"kv_b_proj.v", t.heads, a.still, in_pair}});
  }
  return out;
}

// "experts.w1.weight" of three dimensions as "experts.0.w1.weight", "experts.1.w1.weight", ... of two.
inline stored_weight one_by_one(const std::string& label, const std::vector<long>& shape, std::string_view expert) {
  const std::string behind = "." + std::string(expert) + ".";
  const std::size_t at = label.find(behind) + behind.size();
  stored_weight out = stored_weight::plain(label, {shape.begin() + 1, shape.end()});
  out.tensors.clear();
  for (long e = 0; e < shape[0]; ++e)
    out.tensors.push_back(label.substr(0, at) + std::to_string(e) + "." + label.substr(at));
  return out;
}

// (experts, out, in) as rows of all experts, each of the hidden numbers: of what leads back from these (in, out).
inline stored_weight in_rows(const std::string& label, const std::vector<long>& shape, bool back) {
  const long out = shape[1], in = shape[2], rows = shape[0] * (back ? in : out), row = back ? out : in;
  stored_weight w = stored_weight::plain(label.substr(0, label.rfind('.')), {rows, row});
  if (back) w.walk = {{shape[0], in * out}, {out, 1}, {in, out}};
  return w;
}

inline stored_weight of_experts(const std::string& label, const std::vector<long>& shape, const experts_form& e) {
  if (e.apart) return one_by_one(label, shape, e.expert);
  return in_rows(label, shape, label.ends_with("." + std::string(e.down) + ".weight"));
}

}  // namespace decoder_detail

inline weight_layout public_layout(const transformer& t) {
  return [t, parts = decoder_detail::joined_parts(t)](const std::string& label, const std::vector<long>& shape) {
    for (const decoder_detail::joined_part& p : parts)
      if (const auto found = p.of(label, shape)) return *found;
    if ((t.experts.apart || t.experts.in_rows) && shape.size() == 3)
      return decoder_detail::of_experts(label, shape, t.experts);
    stored_weight out = stored_weight::plain(label, shape);
    if (t.image.size > 0 && label == t.names.first) out.shape = {1, 1, shape[0]};
    if (t.image.size > 0 && label == t.names.positions) out.shape = {1, shape[0], shape[1]};
    return out;
  };
}

}  // namespace cfp::families
