#pragma once

// How much work a solver may do, and the meter that counts it.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <limits>
#include <stop_token>

namespace cfp::inline v0_1 {

/// Where `solve` stops being exact. The first two are counted, so the same graph and options always give the
/// same answer; when `max_seconds` or `stop` strikes depends on the machine.
struct solve_options {
  double max_entries = 2e8;  ///< numbers held in tables at a time (8 bytes each, edges of the graph not counted)
  double max_steps = 2e10;   ///< additions in tables, about 1e9 to 2e9 a second
  double max_seconds = std::numeric_limits<double>::infinity();  ///< wall time; also allows 1e9 steps each at most
  /// An answer is near enough if nothing can be faster by more than this, relative to it; 0: the best is asked for.
  double gap = 0;
  /// Only plans that take less are looked for; where there is none, that is what the answer proves.
  /// Elimination alone knows of it (`exact_policy`).
  double below = std::numeric_limits<double>::infinity();
  std::size_t least_copies = 4;  ///< equal segments in a row from which on they are solved as a power of one
  std::stop_token stop{};        ///< once requested, what was found so far is the answer (CBC does not look)
};

namespace detail {

/// Thrown from inside a solver by what has no answer before its end; the solver catches it.
struct stopped {};

inline void leave_if(const std::stop_token& stop) {
  if (stop.stop_requested()) throw stopped();
}

/// Counts steps against `solve_options`. Once over, it stays over.
class work_meter {
 public:
  explicit work_meter(const solve_options& options)
      : left_(std::min(options.max_steps, 1e9 * options.max_seconds)), seconds_(options.max_seconds),
        stop_(options.stop), start_(std::chrono::steady_clock::now()) {}

  void spend(double steps) { left_ -= steps; }

  [[nodiscard]] double left() const { return left_ > 0 ? left_ : 0; }
  [[nodiscard]] const std::stop_token& stop() const { return stop_; }

  [[nodiscard]] bool over() {
    if (stop_.stop_requested()) left_ = 0;
    if (!(left_ > 0)) return true;
    if (seconds_ == std::numeric_limits<double>::infinity()) return false;
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start_;
    if (passed.count() > seconds_) left_ = 0;
    return !(left_ > 0);
  }

 private:
  double left_;
  double seconds_;
  std::stop_token stop_;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace detail
}  // namespace cfp
