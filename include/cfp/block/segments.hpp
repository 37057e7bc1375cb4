// Segments: the shortest period of the leftmost maximal repetition of the block sequence (a layer, for a transformer).
#pragma once

#include <cfp/block/alike.hpp>
#include <cfp/core/repetition.hpp>

namespace cfp::inline v0_1 {

/// Consecutive blocks.
struct segment {
  int first = 0, count = 0;  ///< blocks
  int kind = 0;              ///< equal kinds are equal segments
};

struct segmentation {
  std::vector<segment> segments;
  int unique = 0;         ///< kinds of segments
  int unique_blocks = 0;  ///< kinds of blocks
};

namespace detail {

// Longest stretch covered by repeating a period from `at`; returns (period, repeats).
inline std::pair<int, int> repetition(const std::vector<int>& kinds, int at) {
  const int n = static_cast<int>(kinds.size());
  int best_period = 1, best_repeats = 1;
  for (int period = 1; at + 2 * period <= n; ++period) {
    const auto matched =
        static_cast<int>(repeats_for(static_cast<std::size_t>(at), static_cast<std::size_t>(period), kinds.size(),
                                     [&](std::size_t i, std::size_t later) { return kinds[i] == kinds[later]; }));
    const int repeats = 1 + matched / period;
    if (repeats > 1 && repeats * period > best_period * best_repeats) best_period = period, best_repeats = repeats;
  }
  return {best_period, best_repeats};
}

}  // namespace detail

inline segmentation segments(const graph& g, const block_structure& s) {
  segmentation out;
  alike_groups alike(g);
  std::vector<int> kinds;
  for (const block& b : s.blocks) {
    std::vector<placed_operation> all;
    const auto take = [&](const std::vector<int>& parts, part::kind_t kind) {
      for (const int p : parts)
        for (const int o : s.parts[static_cast<std::size_t>(p)].operations) all.push_back({o, kind});
    };
    take(b.entries, part::entry);
    take({b.body}, part::body);
    take(b.tails, part::tail);
    kinds.push_back(alike.kind(all));
  }
  out.unique_blocks = alike.kinds();
  std::map<std::vector<int>, int> segment_kind;
  for (int at = 0; at < static_cast<int>(kinds.size());) {
    const auto [period, repeats] = detail::repetition(kinds, at);
    for (int k = 0; k < repeats; ++k) {
      const std::vector<int> body(kinds.begin() + at, kinds.begin() + at + period);
      const int kind = segment_kind.try_emplace(body, static_cast<int>(segment_kind.size())).first->second;
      out.segments.push_back({at, period, kind});
      at += period;
    }
  }
  out.unique = static_cast<int>(segment_kind.size());
  return out;
}

}  // namespace cfp
