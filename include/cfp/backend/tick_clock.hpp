// Times that a queue came to numbered places, by the clock of this process.
#pragma once

#include <chrono>
#include <cstddef>
#include <vector>

namespace cfp::inline v0_1 {

class tick_clock {
 public:
  void tick(int n) {
    const auto at = static_cast<std::size_t>(n);
    if (ticks_.size() <= at) ticks_.resize(at + 1);
    ticks_[at] = clock::now();
  }
  /// Milliseconds from one tick to another.
  double between(int a, int b) const {
    const auto at = [&](int n) { return ticks_[static_cast<std::size_t>(n)]; };
    return std::chrono::duration<double, std::milli>(at(b) - at(a)).count();
  }

 private:
  using clock = std::chrono::steady_clock;
  std::vector<clock::time_point> ticks_;
};

}  // namespace cfp
