// What one mesh axis does to a tensor: replicate it, split one of its dimensions, or leave a part of a sum.
#pragma once

#include <cstdint>

namespace cfp::inline v0_1 {

/// How the parts of a partial tensor combine.
enum class reduction : std::uint8_t { sum, max, min };

/// The view of a partition along one mesh axis.
struct placement {
  enum kind_t : std::uint8_t { replicate, split, partial } kind = replicate;
  int dim = 0;                         ///< which dimension, for split
  reduction combine = reduction::sum;  ///< for partial

  friend constexpr bool operator==(const placement&, const placement&) = default;
};

}  // namespace cfp
