// The memory of ranks' GPUs, of which contexts, NCCL and libraries take some before any program does.
#pragma once

#include <cfp/backend/backend.hpp>

#include <algorithm>
#include <optional>
#include <span>

namespace cfp::inline v0_1 {

/// Of the rank that has least; nothing where ranks have no memory of their own.
struct device_memory {
  long total = 0, free = 0;  ///< bytes; free: for programs

  explicit operator bool() const { return total > 0; }
  long taken() const { return total - free; }
  /// Bytes that a plan may take of a rank that may use so many (0: any), what is taken included.
  std::optional<long> limit(long memory) const {
    if (total == 0) return memory > 0 ? std::optional(memory) : std::nullopt;
    return memory > 0 ? std::clamp(memory - taken(), 0l, free) : free;
  }
};

/// As it is now; every process gets the same.
inline device_memory memory_of(backend& on) {
  device_memory out;
  on.run([&](rank& r) {
    double least[] = {static_cast<double>(r.total_bytes()), static_cast<double>(r.free_bytes())};
    r.combine(std::span(least), reduction::min);
    if (r.leads()) out = {static_cast<long>(least[0]), static_cast<long>(least[1])};
  });
  return out;
}

/// Bytes that a program would take of a rank's device beside what it plans, at most.
inline long beside_bytes(backend& on, const program& p, const graph& g) {
  double out = 0;
  on.run([&](rank& r) {
    double mine = static_cast<double>(r.beside_bytes(p, g));
    r.combine(std::span(&mine, 1), reduction::max);
    if (r.leads()) out = mine;
  });
  return static_cast<long>(out);
}

}  // namespace cfp
