// How a limit of memory is kept, which sums of parts only come near.
#pragma once

#include <cfp/solve/solution.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

namespace cfp::inline v0_1 {

/// The limits that sums of parts are given one after the other, so that programs keep theirs. By what a program exceeds
/// it the limit of the sum goes down; once programs fit, it goes between the limits of these and of those before.
class limits_of_sums {
 public:
  /// Programs may need `wanted` bytes. Begins at a limit, if given.
  explicit limits_of_sums(std::int64_t wanted, std::optional<std::int64_t> first = {}) : wanted_(wanted), now_(first) {}

  /// The limit to try; nothing: none.
  std::optional<std::int64_t> now() const { return now_; }
  /// The highest limit with a plan that fits.
  std::optional<std::int64_t> fitted() const { return fits_.known ? std::optional(limit_) : std::nullopt; }

  /// Its plan's program needs `peak`. Whether another limit is worth a try.
  bool tried(const solution& s, std::int64_t peak) {
    const point at{s.memory, peak, s.time, true};
    if (peak <= wanted_) return fits(at);
    const point before = std::exchange(over_, at);
    const double slope = before.known && before.sum > at.sum && before.peak > peak
                             ? static_cast<double>(before.peak - peak) / static_cast<double>(before.sum - at.sum)
                             : 1;
    const double over = static_cast<double>(peak - wanted_) / std::clamp(slope, 0.3, 1.5);
    now_ = std::min(at.sum, now_.value_or(at.sum)) - std::max(static_cast<std::int64_t>(over), step());
    if (fits_.known && *now_ <= limit_) now_ = between();
    if (least_ && *now_ < *least_ && at.sum < *least_ + 3 * step()) return false;  // not even the leanest fits
    return ++tries_ < most_tries && worthwhile();
  }

  /// It has no plan; `least`: what one needs at least, if that is known.
  bool none(std::optional<std::int64_t> least) {
    if (!now_ || fits_.known || (!over_.known && !least)) return false;
    least_ = least;
    if (!over_.known) {  // sums of parts say too much, or nothing fits
      now_ = std::max(*now_, *least) + 2 * step();
      return ++tries_ < most_tries && ++without_ <= most_without;
    }
    const std::int64_t low = std::max(*now_, least.value_or(0)), half = (over_.sum - low) / 2;
    now_ = low + (least ? std::min(half, 2 * step()) : half);  // whether the leanest fits says whether any does
    return ++tries_ < most_tries && ++without_ <= most_without && low < over_.sum;
  }

 private:
  struct point {
    std::int64_t sum = 0, peak = 0;
    double time = 0;    // by sums
    bool known = true;  // false: there is none
  };
  static constexpr int most_tries = 12, most_raises = 3, most_without = 2;
  static constexpr double little = 1e-3;  // of time, or of the limit

  bool fits(const point& at) {
    if (!now_) return false;  // nothing is faster
    limit_ = fits_.known ? std::max(limit_, *now_) : *now_;
    if (!fits_.known || at.sum > fits_.sum) fits_ = at;
    now_ = over_.known ? between() : at.sum + wanted_ - at.peak;
    return ++tries_ < most_tries && ++tries_fit_ <= most_raises && *now_ > limit_ && worthwhile();
  }

  // A limit above the one that fits and below the sum that does not: where programs in line with both would just fit.
  std::int64_t between() const {
    const double part = over_.peak > fits_.peak
                            ? static_cast<double>(wanted_ - fits_.peak) / static_cast<double>(over_.peak - fits_.peak)
                            : 0.5;
    return limit_ + static_cast<std::int64_t>(std::clamp(part, 0.1, 0.9) * static_cast<double>(over_.sum - limit_));
  }
  // A plan of which the program fits is not much faster than one that did not.
  bool worthwhile() const {
    return !fits_.known || !over_.known ||
           (fits_.time - over_.time > little * fits_.time && over_.sum - limit_ > step());
  }
  std::int64_t step() const { return static_cast<std::int64_t>(little * static_cast<double>(wanted_)); }

  std::int64_t wanted_;
  std::optional<std::int64_t> now_;
  point fits_{0, 0, 0, false}, over_{0, 0, 0, false};
  std::optional<std::int64_t> least_{};  // that some plan needs by its sum
  std::int64_t limit_ = 0;               // the highest that fitted
  int tries_ = 0, tries_fit_ = 0, without_ = 0;
};

}  // namespace cfp
