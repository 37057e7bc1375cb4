// Kernels of operators that are not in the catalogue, as values: what a user's program hands to ranks.
#pragma once

#include <cfp/program/call.hpp>

#include <vector>

namespace cfp::inline v0_1 {

/// One operator's kernels on the host, by what numbers are stored as. `kernels_of` (backend/host/kernels_of.hpp) makes
/// them.
struct own_kernel {
  const op_info* op = nullptr;
  void (*in_float64)(const call&) = nullptr;
  void (*in_float32)(const call&) = nullptr;
  void (*in_bfloat16)(const call&) = nullptr;
};

using own_kernels = std::vector<own_kernel>;

}  // namespace cfp
