// What a larger memory limit would gain a solved plan.
#pragma once

#include <cfp/core/bad_input.hpp>
#include <cfp/solve/exact/exact.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>

namespace cfp::inline v0_1 {

/// What a larger memory limit would gain. A time is +infinity where no plan fits (or none was found, if not proven).
struct relaxation {
  std::int64_t limit_now, limit_then;
  double now, then;  ///< the times of the best plans within each
  double gain;       ///< now - then; 0 if there is no plan either way
  bool proven;       ///< both times are optimal
};

/// What a memory limit larger by `factor` (rounded down to bytes) would gain; nothing if there is no limit. Throws
/// `invalid_cost_graph`, and `bad_input` if the factor is less than 1.
inline std::optional<relaxation> relaxed(const cost_graph& g, const solution& solved, double factor = 1.1,
                                         const solve_options& options = {}) {
  validate(g);
  if (!(factor >= 1) || factor == detail::infinite_time)
    throw bad_input("the factor of a relaxed memory limit must be a finite number of at least 1, got: " +
                    std::to_string(factor));
  if (!g.memory_limit) return std::nullopt;
  cost_graph wider = g;
  if (*g.memory_limit > 0 && *g.memory_limit < max_total_memory)
    wider.memory_limit = static_cast<std::int64_t>(
        std::min(static_cast<double>(*g.memory_limit) * factor, static_cast<double>(max_total_memory)));
  const solution other = solve(wider, options);
  relaxation out{*g.memory_limit,
                 *wider.memory_limit,
                 solved.time,
                 std::min(other.time, solved.time),
                 0,
                 solved.optimal && other.optimal};
  if (out.then < out.now) out.gain = out.now - out.then;
  return out;
}

}  // namespace cfp
