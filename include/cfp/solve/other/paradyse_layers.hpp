// ParaDySe's choice of strategies for the layers of a model (Ou et al., arXiv 2511.13198), for sequences of one length:
// the fastest in all layers if that fits, else so many layers of a faster one as fit, the others of one that takes less
// memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <vector>

namespace cfp::inline v0_1 {

/// What a layer takes under one strategy.
struct layer_strategy {
  double ms = 0, bytes = 0;
};

struct layer_list {
  std::vector<int> count;  ///< layers of each strategy
  double ms = std::numeric_limits<double>::infinity(), bytes = 0;
  bool fits = false;
};

namespace detail {

inline layer_list listed(const std::vector<layer_strategy>& all, std::vector<int> count, double limit) {
  layer_list out;
  out.ms = 0;
  for (std::size_t s = 0; s < all.size(); ++s) out.ms += count[s] * all[s].ms, out.bytes += count[s] * all[s].bytes;
  out.count = std::move(count), out.fits = out.bytes <= limit;
  return out;
}

}  // namespace detail

/// Strategies that no other takes less time and no more memory than, the fastest first.
inline std::vector<int> undominated(const std::vector<layer_strategy>& all) {
  std::vector<int> order(all.size()), out;
  for (std::size_t s = 0; s < all.size(); ++s) order[s] = static_cast<int>(s);
  const auto of = [&](int s) { return all[static_cast<std::size_t>(s)]; };
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return of(a).ms != of(b).ms ? of(a).ms < of(b).ms : of(a).bytes < of(b).bytes;
  });
  for (const int s : order)
    if (out.empty() || of(s).bytes < of(out.back()).bytes) out.push_back(s);
  return out;
}

/// Where nothing fits: that which takes least memory, in all layers.
inline layer_list paradyse_layers(const std::vector<layer_strategy>& all, int layers, double limit) {
  const std::vector<int> some = undominated(all);
  const auto mixed = [&](int fast, int n, int slow) {
    std::vector<int> count(all.size(), 0);
    count[static_cast<std::size_t>(fast)] += n, count[static_cast<std::size_t>(slow)] += layers - n;
    return detail::listed(all, std::move(count), limit);
  };
  layer_list best = mixed(some.front(), layers, some.front());
  if (best.fits) return best;
  best = mixed(some.back(), layers, some.back());
  if (!best.fits) return best;
  for (std::size_t fast = 0; fast < some.size(); ++fast)
    for (std::size_t slow = fast; slow < some.size(); ++slow)
      for (int n = 0; n <= layers; ++n)
        if (const layer_list one = mixed(some[fast], n, some[slow]); one.fits && one.ms < best.ms) best = one;
  return best;
}

}  // namespace cfp
