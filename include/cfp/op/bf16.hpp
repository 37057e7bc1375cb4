// bfloat16 as a way to store numbers: the upper half of a float, rounded to nearest, ties to even. All arithmetic is
// done in float.
#pragma once

#include <cfp/core/config.hpp>
#include <cfp/op/wide.hpp>

#include <cstdint>
#include <type_traits>

namespace cfp::inline v0_1 {

struct bf16 {
  std::uint16_t bits = 0;

  bf16() = default;
  CFP_HOST_DEVICE constexpr explicit bf16(float x) {
#if defined(__CUDA_ARCH__)
    if (!__builtin_is_constant_evaluated()) {
      asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(x));
      return;
    }
#endif
    const auto u = __builtin_bit_cast(std::uint32_t, x);
    if ((u & 0x7fffffffu) > 0x7f800000u) bits = static_cast<std::uint16_t>(u >> 16 | 0x40u);  // not a number stays so
    else bits = static_cast<std::uint16_t>((u + 0x7fffu + (u >> 16 & 1u)) >> 16);
  }
  CFP_HOST_DEVICE constexpr operator float() const {
    return __builtin_bit_cast(float, static_cast<std::uint32_t>(bits) << 16);
  }
};

template <>
struct computed_in<bf16> {
  using type = float;
};

}  // namespace cfp
