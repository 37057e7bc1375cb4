// As cfp::cuda::queue: runs kernels at once, emulated.
#pragma once

#include "emulated_block.hpp"

#include <algorithm>
#include <cstdint>
#include <numeric>

namespace emulated {

struct queue {
  unsigned order = 0;  // in which threads take turns

  template <class Kernel>
  void launch(const Kernel& k, long blocks, long shared_bytes = 0) const { emulated::launch(k, blocks, shared_bytes, order); }
  void zero(void* at, long bytes) const { std::memset(at, 0, static_cast<std::size_t>(bytes)); }
  long sort_bytes(long n) const { return n * static_cast<long>(sizeof(std::int32_t)); }
  void sort_pairs(const std::int32_t* keys, std::int32_t* sorted_keys, const std::int32_t* values, std::int32_t* sorted_values, long n, void* workspace) const {
    auto* at = static_cast<std::int32_t*>(workspace);
    std::iota(at, at + n, 0);
    std::stable_sort(at, at + n, [&](std::int32_t a, std::int32_t b) { return keys[a] < keys[b]; });
    for (long i = 0; i < n; ++i) {
      sorted_keys[i] = keys[at[i]];
      sorted_values[i] = values[at[i]];
    }
  }
};

}  // namespace emulated
