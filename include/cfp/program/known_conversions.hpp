// Conversions by what they depend on: the same ones stand between many choices and in every layer.
#pragma once

#include <cfp/core/convert.hpp>
#include <cfp/model/partition_key.hpp>
#include <cfp/program/step_prices.hpp>

#include <string>
#include <unordered_map>

namespace cfp::inline v0_1 {

namespace detail {

/// Prices as `convert` asks for them. Ranks meet in the order of the mesh: what is gathered or moved along several axes
/// at once must be split in that order.
struct asked_prices {
  const step_prices& of;
  const extents& shape;
  long width;
  const mesh_shape& mesh;

  static constexpr bool several_axes = true, one_step_is_best = false;
  long operator()(const conversion_step& s, const partition& from, long) const {
    if (s.kind == conversion_step::all_gather || s.kind == conversion_step::all_to_all)
      for (int i = from.dims[s.dim].size() - 1; i > 0 && s.along(from.dims[s.dim][i - 1]); --i)
        if (from.dims[s.dim][i - 1] > from.dims[s.dim][i]) return -1;
    return of(s, {shape, from, width}, mesh);
  }
};

}  // namespace detail

/// Of one mesh.
class known_conversions {
 public:
  /// Without prices: along one axis after the other, and by the bytes sent. Prices must outlive this.
  explicit known_conversions(const step_prices* prices = nullptr) : prices_(prices) {}

  /// The cheapest conversion of a tensor of this shape, whose elements take `width` bytes.
  const conversion& operator()(const extents& shape, long width, const mesh_shape& mesh, const partition& from,
                               const partition& to) {
    key_.assign(reinterpret_cast<const char*>(&width), sizeof width);
    for (int d = 0; d < shape.size(); ++d) key_.append(reinterpret_cast<const char*>(&shape[d]), sizeof shape[d]);
    detail::put(key_, from);
    detail::put(key_, to);
    const auto at = conversions_.find(key_);
    return at != conversions_.end() ? at->second
                                    : conversions_.emplace(key_, cheapest(shape, width, mesh, from, to)).first->second;
  }

 private:
  // Prices choose between the way that sends fewest bytes and the cheapest that leaves alone what can stay.
  conversion cheapest(const extents& shape, long width, const mesh_shape& mesh, const partition& from,
                      const partition& to) const {
    conversion by_bytes = convert(from, to, shape, width, mesh);
    if (prices_ == nullptr || !by_bytes.possible) return by_bytes;
    const detail::asked_prices asked{*prices_, shape, width, mesh};
    by_bytes.price = 0;
    partition p = from;
    for (const conversion_step& s : by_bytes.steps) {
      by_bytes.price += asked(s, p, 0);
      p = after(p, s);
    }
    if (by_bytes.collectives() < 2) return by_bytes;
    const conversion by_price = convert(from, to, shape, width, mesh, asked);
    return by_price.possible && by_price.price < by_bytes.price ? by_price : by_bytes;
  }

  const step_prices* prices_;
  std::unordered_map<std::string, conversion> conversions_;
  std::string key_;
};

}  // namespace cfp
