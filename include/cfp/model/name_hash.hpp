// A stable identity of a name: the same on every machine and in every run.
#pragma once

#include <cstdint>
#include <string_view>

namespace cfp::inline v0_1 {

/// FNV-1a, of 64 bits.
constexpr std::uint64_t name_hash(std::string_view s) {
  std::uint64_t h = 1469598103934665603ull;
  for (char c : s) h = (h ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  return h;
}

}  // namespace cfp
