// Moments of an optimizer in fewer bytes: bfloat16, or eight bits with a scale for each block of neighbours
// (arXiv 2110.02861). They are rounded up or down at random, so that what a step changes by less than the distance of
// two such numbers is not lost, on average.
#pragma once

#include <cfp/op/bf16.hpp>
#include <cfp/op/element.hpp>
#include <cfp/op/math.hpp>

#include <cstdint>

namespace cfp::inline v0_1 {

/// 32 random bits for a number: of which tensor, in which step, which of those a device holds.
CFP_HOST_DEVICE constexpr std::uint32_t rounding_bits(std::uint32_t tensor, std::uint64_t step, std::uint64_t number) {
  std::uint64_t x = number + 0x9e3779b97f4a7c15ull * (step << 20 ^ tensor);
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ x >> 27) * 0x94d049bb133111ebull;
  return static_cast<std::uint32_t>(x >> 32);
}

/// The nearest one.
inline constexpr std::uint32_t rounds_to_nearest = 0x8000;

/// As bfloat16: up with the probability that keeps the mean. `bits`: 16 random ones.
CFP_HOST_DEVICE constexpr bf16 rounded_bf16(float x, std::uint32_t bits) {
  const auto u = __builtin_bit_cast(std::uint32_t, x);
  bf16 out;
  if ((u & 0x7f800000u) == 0x7f800000u) return out.bits = static_cast<std::uint16_t>(u >> 16), out;
  out.bits = static_cast<std::uint16_t>((u + bits) >> 16);
  return out;
}

/// Numbers of a block: the sign, and of a magnitude the fourth root in 127 parts of the largest one's. From the largest
/// down to 4e-9 of it they are told apart, the large ones by 3%. What is not zero does not become zero: as a second
/// moment it would let its number move without bound.
struct block8_code {
  CFP_HOST_DEVICE static float decode(std::int8_t code, float scale) {
    const float part = static_cast<float>(code) * (1.0f / 127);
    const float square = part * part;
    return code < 0 ? -scale * square * square : scale * square * square;
  }
  /// `bits`: 16 random ones. `scale`: of no smaller magnitude than x.
  CFP_HOST_DEVICE static std::int8_t encode(float x, float scale, std::uint32_t bits) {
    if (x == 0 || scale == 0) return 0;
    const float ratio = (x < 0 ? -x : x) / scale;
    if (!(ratio < 1)) return static_cast<std::int8_t>(x < 0 ? -127 : 127);  // what is no number stays so, by its scale
    int below = static_cast<int>(127 * sqrt(sqrt(ratio)));
    if (below > 126) below = 126;
    const float low = decode(static_cast<std::int8_t>(below), 1), high = decode(static_cast<std::int8_t>(below + 1), 1);
    const bool up = (ratio - low) * 65536 > static_cast<float>(bits) * (high - low);
    const int code = up || below == 0 ? below + 1 : below;
    return static_cast<std::int8_t>(x < 0 ? -code : code);
  }
};

/// Where the parts of n such numbers lie: the scales, then the codes.
struct blocks_of_8_bits {
  float* scale;
  std::int8_t* code;

  CFP_HOST_DEVICE blocks_of_8_bits(void* at, long n)
      : scale(static_cast<float*>(at)),
        code(reinterpret_cast<std::int8_t*>(scale + (n + block8_numbers - 1) / block8_numbers)) {}
};

}  // namespace cfp
