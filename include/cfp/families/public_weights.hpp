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
  return {{n.query, groups, 0, all},
          {n.key, groups, query, all},
          {n.value, groups, query + key, all},
          {n.gate, 1, 0, 2 * t.inner()},
          {n.up, 1, t.inner(), 2 * t.inner()}};
}

// "experts.w1.weight" of three dimensions as "experts.0.w1.weight", "experts.1.w1.weight", ... of two.
inline stored_weight one_by_one(const std::string& label, const std::vector<long>& shape) {
  static constexpr std::string_view behind = ".experts.";
  const std::size_t at = label.find(behind) + behind.size();
  stored_weight out = stored_weight::plain(label, {shape.begin() + 1, shape.end()});
  out.tensors.clear();
  for (long e = 0; e < shape[0]; ++e)
    out.tensors.push_back(label.substr(0, at) + std::to_string(e) + "." + label.substr(at));
  return out;
}

}  // namespace decoder_detail

inline weight_layout public_layout(const transformer& t) {
  return [parts = decoder_detail::joined_parts(t), apart = t.experts.apart](const std::string& label,
                                                                            const std::vector<long>& shape) {
    for (const decoder_detail::joined_part& p : parts)
      if (const auto found = p.of(label, shape)) return *found;
    if (apart && shape.size() == 3) return decoder_detail::one_by_one(label, shape);
    return stored_weight::plain(label, shape);
  };
}

}  // namespace cfp::families
