// The numbers of a state: their checksums, and whether all of them are finite.
#pragma once

#include <cfp/file/checksum.hpp>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace cfp::inline v0_1::detail {

/// What was found in the numbers of a tensor.
struct seen_numbers {
  std::string checksum{};
  std::size_t finite = 0;  ///< how many come before the first that is not
};

/// Of each tensor, by all threads of the machine: a state may be as large as its memory.
template <class T>
std::vector<seen_numbers> see(const std::vector<std::span<T>>& tensors) {
  std::vector<seen_numbers> out(tensors.size());
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t t = next++; t < tensors.size(); t = next++) {
      const std::span<T> x = tensors[t];
      const auto finite = std::find_if_not(x.begin(), x.end(), [](T number) { return std::isfinite(number); });
      out[t] = {checksum(x.data(), x.size_bytes()), static_cast<std::size_t>(finite - x.begin())};
    }
  };
  std::size_t bytes = 0;
  for (const std::span<T> x : tensors) bytes += x.size_bytes();
  const std::size_t threads =
      std::min({tensors.size(), std::size_t{std::thread::hardware_concurrency()}, bytes >> 20});  // a thread is a MiB
  std::vector<std::jthread> others;
  for (std::size_t n = 1; n < threads; ++n) others.emplace_back(work);
  work();
  others.clear();
  return out;
}

}  // namespace cfp
