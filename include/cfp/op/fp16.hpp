// IEEE half precision as a way to store numbers, rounded to nearest, ties to even. All arithmetic is done in float.
#pragma once

#include <cfp/core/config.hpp>
#include <cfp/op/wide.hpp>

#include <cstdint>

namespace cfp::inline v0_1 {

struct fp16 {
  std::uint16_t bits = 0;

  fp16() = default;
  CFP_HOST_DEVICE constexpr explicit fp16(float x) {
#if defined(__CUDA_ARCH__)
    if (!__builtin_is_constant_evaluated()) {
      asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
      return;
    }
#endif
    const auto u = __builtin_bit_cast(std::uint32_t, x);
    const std::uint32_t size = u & 0x7fffffffu;
    std::uint32_t half = 0;
    if (size > 0x7f800000u) half = 0x7e00u;        // not a number stays so
    else if (size >= 0x477ff000u) half = 0x7c00u;  // from the middle between 65504 and the next on: infinite
    else if (size >= 0x38800000u) half = nearest(size - 0x38000000u, 13);  // 127 - 15 off the exponent
    else if (size > 0x33000000u)
      half = nearest((size & 0x7fffffu) | 0x800000u, 126 - (size >> 23));  // below 2^-14: steps of 2^-24
    bits = static_cast<std::uint16_t>(u >> 16 & 0x8000u) | static_cast<std::uint16_t>(half);
  }
  CFP_HOST_DEVICE constexpr operator float() const {
#if defined(__CUDA_ARCH__)
    if (!__builtin_is_constant_evaluated()) {
      float x;
      asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
      return x;
    }
#endif
    const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16, exponent = bits >> 10 & 0x1fu,
                        rest = bits & 0x3ffu;
    if (exponent == 0) {
      const float x = static_cast<float>(rest) * 0x1p-24f;
      return sign != 0 ? -x : x;
    }
    const std::uint32_t above = exponent == 0x1fu ? 0x7f800000u : (exponent + 112u) << 23;
    return __builtin_bit_cast(float, sign | above | rest << 13);
  }

 private:
  // x / 2^n to nearest, ties to even; n from 1 to 24.
  CFP_HOST_DEVICE static constexpr std::uint32_t nearest(std::uint32_t x, std::uint32_t n) {
    return (x + ((1u << (n - 1)) - 1) + (x >> n & 1u)) >> n;
  }
};

template <>
struct computed_in<fp16> {
  using type = float;
};

}  // namespace cfp
