// To how much memory sums of parts are held so that the programs of a plan fit: these may take more than sums say, or
// less.
#pragma once

#include <algorithm>
#include <cstdint>

namespace cfp::inline v0_1::detail {

class held_memory {
 public:
  /// `limit`: of programs; `begin`: of sums, at first.
  held_memory(std::int64_t limit, std::int64_t begin) : limit_(limit), next_(begin) {}

  /// What to hold sums to now; 0: it is enough.
  std::int64_t next() {
    if (tried_++ == most) end();
    return now_ = next_;
  }
  /// Nothing fits by sums.
  void nothing() {
    floor_ = nothing_ = now_;
    move_to(ceiling_ > 0 ? ceiling_ : now_ + limit_ / 10);
  }
  /// The programs of what does take so much.
  void took(std::int64_t peak) {
    if (peak > limit_) {
      ceiling_ = now_;
      if (static_cast<double>(peak) / static_cast<double>(now_) * static_cast<double>(nothing_) >
          1.02 * static_cast<double>(limit_))
        return end();
      move_to(now_ - std::max(peak - limit_ + limit_ / 1000, step_));
      step_ *= 2;  // less of sums may be the same plan
    } else if (limit_ - peak > limit_ / 33) {
      floor_ = now_;
      move_to(now_ + (limit_ - peak));
    } else {
      end();
    }
  }
  void end() { next_ = 0; }

 private:
  static constexpr int most = 6;

  // Between what was too little and what was too much.
  void move_to(std::int64_t memory) {
    if (floor_ > 0 && ceiling_ > 0 && (memory <= floor_ || memory >= ceiling_))
      memory = floor_ + (ceiling_ - floor_) / 2;
    const std::int64_t step = memory > now_ ? memory - now_ : now_ - memory;
    if (memory <= 0 || step < limit_ / 500) end();
    else next_ = memory;
  }

  const std::int64_t limit_;
  std::int64_t next_, now_ = 0, floor_ = 0, ceiling_ = 0;  // floor: too little, or it fits; 0: not known
  std::int64_t nothing_ = 0;                               // too little
  std::int64_t step_ = limit_ / 300;
  int tried_ = 0;
};

}  // namespace cfp::inline v0_1::detail
