#pragma once

// A range of levels for the largest transient, as a search within a memory limit takes it up.

#include <cfp/solve/memory/choice_bounds.hpp>

#include <cstddef>
#include <memory>

namespace cfp::inline v0_1::detail {

struct transient_band {
  double bound;      // on time
  double price;      // a guess
  std::size_t low;   // first and
  std::size_t high;  // last level
  std::shared_ptr<const choice_bounds> known;
  int visits = 0;

  bool operator<(const transient_band& other) const {  // the queue takes the greatest: the least bound
    return bound != other.bound ? bound > other.bound : low > other.low;
  }
};

}  // namespace cfp::detail
