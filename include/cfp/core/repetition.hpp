// How far a sequence repeats with a period: what segments of a model and runs of a cost graph are found by.
#pragma once

#include <cstddef>

namespace cfp::inline v0_1 {

/// How many places from `at` on, below `end`, are like the place one period later, as `alike(place, place + period)`
/// says.
template <class Alike>
constexpr std::size_t repeats_for(std::size_t at, std::size_t period, std::size_t end, const Alike& alike) {
  std::size_t matched = 0;
  while (at + matched + period < end && alike(at + matched, at + matched + period)) ++matched;
  return matched;
}

}  // namespace cfp
