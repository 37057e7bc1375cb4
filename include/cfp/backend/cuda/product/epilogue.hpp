// What a product does with its numbers before they are stored.
#pragma once

#include <cfp/backend/cuda/chain/chain_call.hpp>

namespace cfp::inline v0_1::cuda {

/// At most one of bias, slope and sums.
struct epilogue {
  chain_tensor bias{};      ///< one number for each column, added; none: no gelu either
  chain_tensor residual{};  ///< of the result's shape, added to it; or none
  bool gelu = false;
  void* before_gelu = nullptr;     ///< where the numbers are stored that gelu is taken of; or none
  const void* slope_at = nullptr;  ///< numbers of the result's shape: it is multiplied by the slopes of gelu there
  void* sums = nullptr;            ///< of an operand over what the product sums; stored like the result
  int summed = 0;                  ///< which operand

  bool any() const {
    return bias.data != nullptr || residual.data != nullptr || slope_at != nullptr || sums != nullptr;
  }
};

}  // namespace cfp::cuda
