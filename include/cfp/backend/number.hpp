// What numbers are stored as, chosen at run time.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace cfp::inline v0_1 {

/// What numbers are stored as. Those of 16 bits are computed with in float32, and weights, their sums and the state of
/// optimizers stay float32.
enum class number : std::uint8_t { float64, float32, bfloat16, float16 };
inline constexpr std::array<std::string_view, 4> number_names{"float64", "float32", "bfloat16", "float16"};
constexpr std::string_view name_of(number n) { return number_names[static_cast<std::size_t>(n)]; }
constexpr long bytes_of(number n) { return n == number::float64 ? 8 : n == number::float32 ? 4 : 2; }

}  // namespace cfp
