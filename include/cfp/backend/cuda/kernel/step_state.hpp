// What changes from step to step. Kernels read it from the device's memory when they run: launches are recorded once
// and replayed.
#pragma once

#include <cstdint>

namespace cfp::inline v0_1::cuda {

struct step_state {
  std::int64_t step = 0;  ///< optimizer step, from 1
  std::int32_t pass = 0;  ///< micro-batch of the step, from 0
};

}  // namespace cfp::cuda
