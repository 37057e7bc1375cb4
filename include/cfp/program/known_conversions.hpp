// Conversions by what they depend on: the same ones stand between many choices and in every layer.
#pragma once

#include <cfp/core/convert.hpp>
#include <cfp/model/graph.hpp>

#include <string>
#include <unordered_map>
#include <utility>

namespace cfp::inline v0_1 {

/// Of one mesh.
class known_conversions {
 public:
  /// The cheapest conversion of a tensor of this shape, whose elements take `width` bytes.
  const conversion& operator()(const extents& shape, long width, const mesh_shape& mesh, const partition& from,
                               const partition& to) {
    std::string key(reinterpret_cast<const char*>(&width), sizeof width);
    for (int d = 0; d < shape.size(); ++d) key.append(reinterpret_cast<const char*>(&shape[d]), sizeof shape[d]);
    for (const partition* p : {&from, &to}) {
      for (const auto& axes : p->dims) {
        for (const signed char a : axes) key += static_cast<char>(a);
        key += static_cast<char>(max_axes);
      }
      for (int a = 0; a < mesh.rank(); ++a)
        key += p->partial[a].owed ? static_cast<char>(1 + static_cast<int>(p->partial[a].combine)) : '\0';
    }
    const auto [at, fresh] = conversions_.try_emplace(std::move(key));
    if (fresh) at->second = convert(from, to, shape, width, mesh);
    return at->second;
  }

 private:
  std::unordered_map<std::string, conversion> conversions_;
};

}  // namespace cfp
