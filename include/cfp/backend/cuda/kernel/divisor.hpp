// Division by a number that is known before a kernel starts, for a multiplication and a shift instead of about 30
// instructions.
#pragma once

#include <cfp/backend/cuda/kernel/kernel.hpp>

#include <cstdint>

namespace cfp::inline v0_1::cuda {

class divisor {
 public:
  divisor() = default;
  /// `by` is at least 1.
  explicit divisor(long by) : by_(by) {
    if (by >= limit) return;
    while ((1L << (shift_ - 31)) < by) ++shift_;
    multiplier_ = ((1UL << shift_) + static_cast<std::uint64_t>(by) - 1) / static_cast<std::uint64_t>(by);
  }

  /// x / by and what is left, x not negative. Below 2^31 the error of the rounded reciprocal is less than 1 / by
  /// (Granlund and Montgomery 1994, section 4).
  CFP_DEVICE long divide(long x, long& left) const {
    const long out =
        x < limit && by_ < limit ? static_cast<long>(static_cast<std::uint64_t>(x) * multiplier_ >> shift_) : x / by_;
    left = x - out * by_;
    return out;
  }
  CFP_HOST_DEVICE long by() const { return by_; }

 private:
  static constexpr long limit = 1L << 31;
  long by_ = 1;
  std::uint64_t multiplier_ = limit;  // of 32 bits
  int shift_ = 31;
};

}  // namespace cfp::cuda
