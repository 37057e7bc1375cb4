// Conversions by what they depend on: the same ones stand between many choices and in every layer.
#pragma once

#include <cfp/core/convert.hpp>
#include <cfp/model/partition_key.hpp>

#include <string>
#include <unordered_map>

namespace cfp::inline v0_1 {

/// Of one mesh.
class known_conversions {
 public:
  /// The cheapest conversion of a tensor of this shape, whose elements take `width` bytes.
  const conversion& operator()(const extents& shape, long width, const mesh_shape& mesh, const partition& from,
                               const partition& to) {
    key_.assign(reinterpret_cast<const char*>(&width), sizeof width);
    for (int d = 0; d < shape.size(); ++d) key_.append(reinterpret_cast<const char*>(&shape[d]), sizeof shape[d]);
    detail::put(key_, from);
    detail::put(key_, to);
    const auto at = conversions_.find(key_);
    return at != conversions_.end() ? at->second
                                    : conversions_.emplace(key_, convert(from, to, shape, width, mesh)).first->second;
  }

 private:
  std::unordered_map<std::string, conversion> conversions_;
  std::string key_;
};

}  // namespace cfp
