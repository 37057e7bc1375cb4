#pragma once

// Partial plans, and which of them no other one beats.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <utility>
#include <vector>

namespace cfp::inline v0_1::detail {

inline constexpr std::uint32_t no_label = std::numeric_limits<std::uint32_t>::max();

/// A partial plan: choices for a step's node and everything eliminated into it, given an entry of its
/// message.
struct label {
  double time;
  double excess;  // its time + price * memory, above the least of its entry
  std::int64_t memory;
  std::int64_t transient;
  std::uint32_t choice;
  std::uint32_t trace;  // which labels of the step's inputs it consists of: the last one
  std::uint32_t input;  // a label about to be appended to the trace
};

/// Keeps the labels that no other one matches or beats in all three figures, ordered by memory.
inline void keep_undominated(std::vector<label>& labels) {
  std::sort(labels.begin(), labels.end(), [](const label& a, const label& b) {
    if (a.memory != b.memory) return a.memory < b.memory;
    if (a.time != b.time) return a.time < b.time;
    return a.transient < b.transient;
  });
  // Of the labels kept, those that a larger memory must beat: transient ascending, time descending.
  std::vector<std::pair<std::int64_t, double>> front;
  std::size_t kept = 0;
  for (const label& l : labels) {
    auto after = std::upper_bound(front.begin(), front.end(), l.transient,
                                  [](std::int64_t t, const auto& f) { return t < f.first; });
    if (after != front.begin() && std::prev(after)->second <= l.time) continue;
    const auto same =
        std::lower_bound(front.begin(), after, l.transient, [](const auto& f, std::int64_t t) { return f.first < t; });
    while (after != front.end() && after->second >= l.time) ++after;
    front.insert(front.erase(same, after), {l.transient, l.time});
    labels[kept++] = l;
  }
  labels.resize(kept);
}

}  // namespace cfp::detail
