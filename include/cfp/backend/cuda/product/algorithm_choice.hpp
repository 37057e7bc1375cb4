// Which of a matrix library's algorithms a product is computed by.
#pragma once

#include <cstdint>
#include <string_view>

namespace cfp::inline v0_1::cuda {

/// Ranks that compute the same agree in it: sums of other algorithms are rounded otherwise.
struct algorithm_choice {
  std::uint64_t product = 0;   ///< its shape, types, alignment and epilogue, hashed
  std::int64_t algorithm = 0;  ///< the number of a suggestion

  static constexpr std::uint64_t hash(std::string_view key) {
    std::uint64_t out = 14695981039346656037u;  // FNV-1a
    for (const char c : key) out = (out ^ static_cast<unsigned char>(c)) * 1099511628211u;
    return out;
  }
  bool operator==(const algorithm_choice&) const = default;
};

}  // namespace cfp::cuda
