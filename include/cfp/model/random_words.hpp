// Random numbers by counting: a function of a seed, a tensor and a place in it, so that every mesh draws the same.
#pragma once

#include <Random123/philox.h>

#include <cstdint>

namespace cfp::inline v0_1 {

/// Four random words for one global index of one tensor.
inline r123::Philox4x32::ctr_type random_words(std::uint64_t seed, std::uint64_t tensor, std::uint64_t index) {
  const auto low = [](std::uint64_t x) { return static_cast<std::uint32_t>(x); };
  r123::Philox4x32::ctr_type counter = {{low(index), low(index >> 32), low(tensor), low(tensor >> 32)}};
  r123::Philox4x32::key_type key = {{low(seed), low(seed >> 32)}};
  return r123::Philox4x32()(counter, key);
}

}  // namespace cfp
