// What numbers of a tensor are stored as.
#pragma once

#include <cstdint>

namespace cfp::inline v0_1 {

enum class element : std::uint8_t {
  real,      ///< the executor's number type
  wide,      ///< that, but of 32 bits at least: optimizer state, sums of many numbers, weights of one dimension
  index,     ///< 32-bit integers
  bfloat16,  ///< optimizer state in 16 bits, whatever the number type is
  blocks8,   ///< optimizer state in 8 bits, and a float for each block of neighbours (`blocks_of_8_bits`)
};

/// Neighbours of one scale, as a device holds them; the last block of a tensor may have fewer.
inline constexpr long block8_numbers = 256;

/// Bytes of a number, where one of the number type takes `real_bytes`; scales of blocks apart.
constexpr long width_of(element type, long real_bytes) {
  switch (type) {
    case element::real: return real_bytes;
    case element::wide: return real_bytes < 4 ? 4 : real_bytes;
    case element::index: return 4;
    case element::bfloat16: return 2;
    case element::blocks8: return 1;
  }
  return real_bytes;
}

/// Bytes of n numbers.
constexpr long bytes_of(element type, long n, long real_bytes) {
  const long scales = type == element::blocks8 ? (n + block8_numbers - 1) / block8_numbers * 4 : 0;
  return scales + n * width_of(type, real_bytes);
}

/// Whether it is a form for optimizer state alone: no operator but the update reads it.
constexpr bool is_lean(element type) { return type == element::bfloat16 || type == element::blocks8; }

/// Wide numbers are told apart only where they are wider.
constexpr element stored(element type, long real_bytes) {
  return type == element::wide && width_of(type, real_bytes) == real_bytes ? element::real : type;
}

}  // namespace cfp
