// What a stage of a pipeline takes of a micro-batch.
#pragma once

#include <cfp/core/bad_input.hpp>
#include <cfp/pipeline/pipeline_schedule.hpp>

#include <string>

namespace cfp::inline v0_1 {

/// What a stage takes, each micro-batch alike; times in milliseconds.
struct stage_cost {
  double forward = 1, backward_inputs = 1, backward_weights = 1;
  double update = 0;
  double send_forward = 0;   ///< what the next stage, on another rank, waits for its result
  double send_backward = 0;  ///< the same of the gradient, to the stage before
  double kept = 1;           ///< bytes of a micro-batch from its forward until its backward is over

  double of(slot::kind_t kind) const {
    switch (kind) {
      case slot::forward: return forward;
      case slot::backward: return backward_inputs + backward_weights;
      case slot::backward_inputs: return backward_inputs;
      case slot::backward_weights: return backward_weights;
      case slot::update: return update;
    }
    return 0;
  }
};

/// Throws bad_input unless all of it is finite, and 0 or more.
inline void check(const stage_cost& c) {
  for (const double x :
       {c.forward, c.backward_inputs, c.backward_weights, c.update, c.send_forward, c.send_backward, c.kept})
    if (!(x >= 0 && x <= 1e18))
      throw bad_input("what a stage takes and keeps must be numbers from 0 to 1e18, one is " + std::to_string(x));
}

}  // namespace cfp
