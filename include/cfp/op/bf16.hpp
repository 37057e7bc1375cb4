// bfloat16 as a way to store numbers: the upper half of a float, rounded to nearest, ties to even. All arithmetic is done in
// float.
#pragma once

#include <cfp/core/config.hpp>

#include <cstdint>
#include <type_traits>

namespace cfp::inline v0_1 {

struct bf16 {
  std::uint16_t bits = 0;

  bf16() = default;
  CFP_HOST_DEVICE constexpr explicit bf16(float x) {
    const auto u = __builtin_bit_cast(std::uint32_t, x);
    if ((u & 0x7fffffffu) > 0x7f800000u) bits = static_cast<std::uint16_t>(u >> 16 | 0x40u);  // not a number stays so
    else bits = static_cast<std::uint16_t>((u + 0x7fffu + (u >> 16 & 1u)) >> 16);
  }
  CFP_HOST_DEVICE constexpr operator float() const { return __builtin_bit_cast(float, static_cast<std::uint32_t>(bits) << 16); }
};

/// The type in which numbers stored as `T` are computed, and sums of many are stored: float at least.
template <class T>
using wide_t = std::conditional_t<std::is_same_v<T, bf16>, float, T>;

}  // namespace cfp
