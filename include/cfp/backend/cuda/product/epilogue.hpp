// What a product does with its numbers before they are stored.
#pragma once

#include <cfp/backend/cuda/chain/chain_call.hpp>

namespace cfp::inline v0_1::cuda {

struct epilogue {
  chain_tensor bias{};      ///< one number for each column; none: nothing is added, and nothing else is done
  chain_tensor residual{};  ///< of the result's shape, added to it; or none
  bool gelu = false;
  void* before_gelu = nullptr;  ///< where the numbers are stored that gelu is taken of; or none
};

}  // namespace cfp::cuda
