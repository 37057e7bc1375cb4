// Which of a matrix library's algorithms a product is computed by.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <vector>

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

/// By names that another run understands: the library's, and the product.
inline std::map<std::string, long> named(const std::vector<algorithm_choice>& all, const std::string& library) {
  std::map<std::string, long> out;
  for (const algorithm_choice& c : all) out[library + " " + std::to_string(c.product)] = c.algorithm;
  return out;
}
/// Those of this library.
inline std::vector<algorithm_choice> choices_named(const std::map<std::string, long>& all, const std::string& library) {
  std::vector<algorithm_choice> out;
  for (const auto& [name, algorithm] : all)
    if (name.starts_with(library + " "))
      out.push_back({std::strtoull(name.c_str() + library.size() + 1, nullptr, 10), algorithm});
  return out;
}

}  // namespace cfp::cuda
