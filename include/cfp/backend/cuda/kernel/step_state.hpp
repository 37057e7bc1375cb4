// What changes from step to step. Kernels read it from the device's memory when they run: launches are recorded once
// and replayed.
#pragma once

#include <cfp/backend/cuda/kernel/kernel.hpp>

#include <cstdint>

namespace cfp::inline v0_1::cuda {

struct step_state {
  std::int64_t step = 0;  ///< optimizer step, from 1
  std::int32_t pass = 0;  ///< micro-batch of the step, from 0
  bool first = true;      ///< sums over micro-batches begin with it
};

/// Writes the step where kernels read it, or the pass: the other stays.
struct set_step_kernel {
  static constexpr int threads = 1;
  step_state* to;
  std::int64_t step;
  template <class Thread>
  CFP_DEVICE void operator()(const Thread&) const {
    to->step = step;
  }
};
struct set_pass_kernel {
  static constexpr int threads = 1;
  step_state* to;
  std::int32_t pass;
  bool first;
  template <class Thread>
  CFP_DEVICE void operator()(const Thread&) const {
    to->pass = pass, to->first = first;
  }
};

}  // namespace cfp::cuda
