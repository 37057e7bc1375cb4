// What a layer that the compiler plans communicates, or why it cannot be planned.
#pragma once

#include <cfp/core/collective.hpp>
#include <cfp/core/list.hpp>
#include <cfp/core/text.hpp>

namespace cfp::inline v0_1 {

/// One collective of a lowered layer, and the tensor it moves.
struct scheduled_collective {
  collective_kind kind = collective_kind::all_reduce;
  name axis;
  long_name tensor;
  long bytes = 0;  ///< sent by each device
};

/// The collectives of one pass, in the order they run.
struct scheduled_collectives {
  list<scheduled_collective, 64> collectives;
  long bytes = 0;
  long over = 0;  ///< collectives that found no room

  constexpr int count(collective_kind kind) const {
    int n = 0;
    for (const scheduled_collective& c : collectives) n += c.kind == kind;
    return n;
  }
  constexpr int size() const { return collectives.size(); }
};

/// What a layer communicates, or why it cannot be planned.
struct layer_report {
  scheduled_collectives forward;    ///< up to the layer's result
  scheduled_collectives backward;   ///< up to the gradient of the layer's inputs
  scheduled_collectives gradients;  ///< what completes the gradients of weights

  enum kind_t : std::uint8_t {
    nothing,
    untraceable,
    too_long,
    unknown_tensor,
    partition,
    contradiction,
    whole_split,
    not_divisible
  } problem = nothing;
  sentence why;
};

}  // namespace cfp
