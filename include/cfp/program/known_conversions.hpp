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

/// Sends what a conversion sums up compressed, where that costs less: `price(step, partition before it)`.
template <class Price>
constexpr void compress(conversion& c, compression form, const partition& from, const Price& price) {
  if (form == compression::none) return;
  partition p = from;
  for (conversion_step& s : c.steps) {
    conversion_step fewer = s;
    fewer.sent_as = form;
    if (s.sums())
      if (const long less = price(s, p) - price(fewer, p); less > 0) s = fewer, c.price -= less;
    p = after(p, s);
  }
}

/// Of one mesh.
class known_conversions {
 public:
  /// Without prices: along one axis after the other, and by the bytes sent. Prices must outlive this.
  explicit known_conversions(const step_prices* prices = nullptr) : prices_(prices) {}

  /// The cheapest conversion of a tensor of this shape whose elements take `width` bytes; sums may be sent as `form`.
  const conversion& operator()(const extents& shape, long width, const mesh_shape& mesh, const partition& from,
                               const partition& to, compression form = compression::none) {
    key_.assign(reinterpret_cast<const char*>(&width), sizeof width);
    for (int d = 0; d < shape.size(); ++d) key_.append(reinterpret_cast<const char*>(&shape[d]), sizeof shape[d]);
    detail::put(key_, from);
    detail::put(key_, to);
    key_ += static_cast<char>(form);
    const auto at = conversions_.find(key_);
    if (at != conversions_.end()) return at->second;
    conversion c = cheapest(shape, width, mesh, from, to);
    const step_prices& prices = prices_ != nullptr ? *prices_ : links_alike;
    compress(c, form, from, [&](const conversion_step& s, const partition& p) {
      return prices(s, {shape, p, width}, mesh);
    });
    return conversions_.emplace(key_, c).first->second;
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
