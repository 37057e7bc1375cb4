#pragma once

// A range of levels for the largest transient, as a search within a memory limit takes it up.

#include <cstddef>
#include <memory>
#include <vector>

namespace cfp::inline v0_1::detail {

using choice_bounds = std::vector<std::vector<double>>;  // per node and choice of the cost graph, on time

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
