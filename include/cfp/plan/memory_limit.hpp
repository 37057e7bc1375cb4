// How a limit of memory is kept, which sums of parts only come near.
#pragma once

#include <cfp/solve/solution.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>

namespace cfp::inline v0_1 {

/// The next limit for sums of parts, when a plan within `now` (none: no limit yet) of which they said `sum` needs
/// `over` more than `wanted`: below that plan's own sum, and by enough that few such steps do. Bytes.
inline std::int64_t lower_limit(std::optional<std::int64_t> now, std::int64_t sum, std::int64_t over,
                                std::int64_t wanted) {
  return std::min(sum, now.value_or(sum)) - std::max(over, wanted / 200);
}

/// The limits that sums of parts are given one after the other, so that programs keep theirs. By what a program misses
/// it the limit of the sum goes down; when that went past plans that fit, between the two.
class limits_of_sums {
 public:
  /// Programs may need `wanted` bytes. Begins at a limit, if given.
  explicit limits_of_sums(std::int64_t wanted, std::optional<std::int64_t> first = {}) : wanted_(wanted), now_(first) {}

  /// The limit to try; nothing: none.
  std::optional<std::int64_t> now() const { return now_; }
  /// The highest limit with a plan that fits.
  std::optional<std::int64_t> fitted() const { return fits_; }

  /// Its plan's program needs `peak`. Whether another limit is worth a try.
  bool tried(const solution& s, std::int64_t peak) {
    if (peak <= wanted_) return fits(s, wanted_ - peak);
    if (s.memory <= over_) over_ = s.memory, time_over_ = s.time;
    now_ = lower_limit(now_, s.memory, peak - wanted_, wanted_);
    if (fits_ && *now_ <= *fits_) now_ = between(*fits_, over_);
    return ++tries_ < most_tries && (!fits_ || worthwhile());
  }

  /// It has no plan; `least`: what one needs at least, if that is known.
  bool none(std::optional<std::int64_t> least) {
    if (!now_ || fits_ || over_ == nothing) return false;
    const std::int64_t low = std::max(*now_, least.value_or(0));
    now_ = between(low, over_);
    return ++tries_ < most_tries && low < over_;
  }

 private:
  static constexpr int most_tries = 10, most_raises = 2;
  static constexpr std::int64_t nothing = std::numeric_limits<std::int64_t>::max();
  static constexpr double little = 1e-3;  // of time, or of the limit

  bool fits(const solution& s, std::int64_t unused) {
    if (!now_) return false;  // nothing is faster
    if (!fits_ || *now_ > *fits_) fits_ = now_;
    time_ = tries_fit_ == 0 ? s.time : std::min(time_, s.time);
    const std::int64_t filled = s.memory + unused, middle = over_ == nothing ? filled : between(*fits_, over_);
    now_ = filled < over_ ? std::max(filled, middle) : middle;
    return ++tries_ < most_tries && ++tries_fit_ <= most_raises && *now_ > *fits_ + step() && worthwhile();
  }

  // A plan of which the program fits is not much faster than one that did not.
  bool worthwhile() const {
    return over_ == nothing || (time_ - time_over_ > little * time_ && over_ - *fits_ > step());
  }
  std::int64_t step() const { return static_cast<std::int64_t>(little * static_cast<double>(wanted_)); }
  static std::int64_t between(std::int64_t low, std::int64_t high) { return low + (high - low) / 2; }

  std::int64_t wanted_;
  std::optional<std::int64_t> now_, fits_;
  std::int64_t over_ = nothing;      // the least sum of a plan that does not fit
  double time_ = 0, time_over_ = 0;  // of plans, by sums
  int tries_ = 0, tries_fit_ = 0;
};

}  // namespace cfp
