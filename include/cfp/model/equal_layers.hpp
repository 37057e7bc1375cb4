// Which of many equal layers are written down, and how many each of them stands for.
#pragma once

#include <cfp/model/model.hpp>

#include <vector>

namespace cfp::inline v0_1 {

/// Equal layers one behind the other.
struct layer_copy {
  long number = 0;  ///< of the first, from 0
  long times = 1;   ///< as many as it stands for
};

/// On either side of a layer that stands for many, as many have the same sharding as it.
inline constexpr long beside_many = 4;

/// All of n layers; or, `folded` and if there are many, few of them. Those that stand for many do so in halves: of so
/// many, each with a sharding of its own, plans have about as many layers of either of two shardings as they like.
constexpr std::vector<layer_copy> written_layers(long n, bool folded) {
  constexpr long at_ends = 2, halvings = 4, together = 2 * beside_many + 1;
  constexpr long least = 200;
  static_assert(least >= 2 * at_ends + (together + 1) * (1 << (halvings - 1)));
  std::vector<layer_copy> out;
  const auto write = [&](long times) {
    const long number = out.empty() ? 0 : out.back().number + out.back().times;
    out.push_back({number, times});
  };
  if (!folded || n < least) {
    for (long l = 0; l < n; ++l) write(1);
    return out;
  }
  for (long l = 0; l < at_ends; ++l) write(1);
  long left = n - 2 * at_ends;
  for (long half = 1; half <= halvings; ++half) {
    const long share = half < halvings ? left / 2 : left;
    left -= share;
    for (long l = 0; l < together; ++l) write(l == beside_many ? share - (together - 1) : 1);
  }
  for (long l = 0; l < at_ends; ++l) write(1);
  return out;
}

/// Does `layer(number)` n times; each works on what the one before made. Layers are equal every `period`. With `folded`
/// and n large the graph has few of them, some of which stand for many (`operation::times`): it can be planned for a
/// machine that is described, and not be run.
template <class Layer>
constexpr void repeat_layers(model& net, long n, long period, bool folded, Layer&& layer) {
  const bool fold = folded && n % period == 0;
  const long together = fold ? period : 1;
  for (const layer_copy& c : written_layers(n / together, fold)) {
    net.times = c.times;
    for (long l = 0; l < together; ++l) layer(together * c.number + l);
  }
  net.times = 1;
}

}  // namespace cfp
