// Bytes that the programs of one rank hold, and the most they ever held.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>

namespace cfp::inline v0_1 {

struct memory_use {
  long now = 0, peak = 0;

  void take(long bytes) {
    now += bytes;
    peak = std::max(peak, now);
  }
};

/// Frees a block by `Free` and counts it as freed.
template <void (*Free)(std::byte*)>
struct counted_free {
  memory_use* use = nullptr;
  long bytes = 0;

  void operator()(std::byte* p) const {
    Free(p);
    if (use != nullptr) use->now -= bytes;
  }
};

}  // namespace cfp
