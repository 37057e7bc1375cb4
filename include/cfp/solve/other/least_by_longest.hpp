// The least of a sum and some times the longest part. The longest is one of few: for each that may be, from the
// shortest on, the least sum of parts none of which is longer (Alpa, arXiv 2201.12023, section 5; TeraPipe, arXiv
// 2102.07988).
#pragma once

#include <limits>
#include <set>

namespace cfp::inline v0_1::detail {

/// `within(longest)` finds the least sum of parts none of which is longer, infinity where there is none. Returns the
/// bound of the parts that makes sum + times * bound least, infinity where nothing is found. Bounds that alone take as
/// long as what was found are not looked at.
template <class Within>
double best_longest(const std::set<double>& lengths, double times, Within within) {
  double best = std::numeric_limits<double>::infinity(), out = best;
  for (const double longest : lengths) {
    if (times * longest >= best) break;
    const double ms = within(longest) + times * longest;
    if (ms < best) best = ms, out = longest;
  }
  return out;
}

}  // namespace cfp::inline v0_1::detail
