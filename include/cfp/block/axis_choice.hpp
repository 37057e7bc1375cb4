// What one mesh axis does in a part.
#pragma once

#include <cfp/core/list.hpp>
#include <cfp/core/mesh.hpp>

#include <cstdint>
#include <vector>

namespace cfp::inline v0_1 {

/// What one mesh axis does in a part. Numbers are dimension classes of the part.
struct axis_choice {
  static constexpr int none = -1;     ///< replicate
  static constexpr int partial = -2;  ///< target only: the sum stays owed through a linear tail
  int split = none;
  int target = none;  ///< for an inner dimension, or one that arrives as two factors: what follows it splits this

  /// Where weights that this axis does not split rest, with their gradients and optimizer state. Vectors (biases,
  /// norms) rest whole: their collectives would take longer than their updates, and they hold next to nothing.
  enum rest_t : std::uint8_t {
    as_computed,  ///< whole on every device
    scattered,    ///< split over the axis, gathered once a step (as ZeRO's second stage communicates)
    regathered,   ///< the same, and gathered again for backward (ZeRO's third stage, FSDP)
  } rest = as_computed;
  friend bool operator==(const axis_choice&, const axis_choice&) = default;
};

/// One choice per mesh axis.
using strategy = list<axis_choice, max_axes>;

/// A mesh axis on which every part does what it is told; open is what the other axes do.
struct held_axis {
  int axis = -1;                     ///< none
  std::vector<axis_choice> of_part;  ///< by index of the part
};

}  // namespace cfp
