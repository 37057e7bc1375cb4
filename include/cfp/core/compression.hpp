// What sums of gradients are sent as, where the user lets numbers be changed by it: fewer bytes for each block of
// neighbours.
#pragma once

#include <cfp/core/config.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace cfp::inline v0_1 {

enum class compression : std::uint8_t {
  none,      ///< the numbers themselves
  bfloat16,  ///< each in 16 bits
  blocks8,   ///< each in 8 bits, and a scale for each block
  largest,   ///< of each block the eight of largest magnitude, each in 16 bits, and their places
};
inline constexpr std::array<std::string_view, 4> compression_names{"none", "bfloat16", "8bit", "largest"};
constexpr std::string_view name_of(compression c) { return compression_names[static_cast<std::size_t>(c)]; }

/// Neighbours in a block, the last of which may be filled up; and how many of them `largest` sends.
inline constexpr long compressed_numbers = 256, largest_numbers = 8;

/// Bytes of n numbers; of none, if they are sent themselves.
CFP_HOST_DEVICE constexpr long compressed_bytes(compression c, long n) {
  const long of_block = c == compression::bfloat16  ? 2 * compressed_numbers
                        : c == compression::blocks8 ? 4 + compressed_numbers
                        : c == compression::largest ? (2 + 1) * largest_numbers
                                                    : 0;
  return (n + compressed_numbers - 1) / compressed_numbers * of_block;
}

}  // namespace cfp
