// Where the time of a search for plans goes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <mutex>

namespace cfp::inline v0_1 {

/// What a search for plans does, from a model to a plan.
enum class stage : std::uint8_t {
  graph,       ///< the training graph, and its blocks
  strategies,  ///< the decisions of a mesh and their choices
  prices,      ///< times and memory of choices and conversions
  solve,       ///< choosing
  lower,       ///< choices become programs, their memory planned
  simulate,    ///< programs are priced
};
inline constexpr std::array<const char*, 6> stage_names{"graph", "strategies", "prices", "solve", "lower", "simulate"};

/// Seconds of a processor that each stage took, those of all threads added up.
class stage_clock {
 public:
  void add(stage s, double seconds) {
    const std::lock_guard lock(mutex_);
    seconds_[static_cast<std::size_t>(s)] += seconds;
  }
  std::array<double, stage_names.size()> seconds() const {
    const std::lock_guard lock(mutex_);
    return seconds_;
  }

 private:
  mutable std::mutex mutex_;
  std::array<double, stage_names.size()> seconds_{};
};

/// Counts for a stage what its thread does while it lives. No two at a time on a thread.
class stage_timer {
 public:
  /// Without a clock it does nothing.
  stage_timer(stage_clock* clock, stage s) : clock_(clock), stage_(s), begin_(clock != nullptr ? now() : 0) {}
  ~stage_timer() {
    if (clock_ != nullptr) clock_->add(stage_, now() - begin_);
  }
  stage_timer(const stage_timer&) = delete;
  stage_timer& operator=(const stage_timer&) = delete;

 private:
  static double now() {
    timespec t{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
  }

  stage_clock* clock_;
  stage stage_;
  double begin_;
};

}  // namespace cfp
