// Plans of one mesh, priced alike by the programs they become.
#pragma once

#include <cfp/plan/plan.hpp>
#include <cfp/profile/machine/timeline.hpp>
#include <cfp/program/schedule.hpp>
#include <cfp/solve/cost_graph.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

namespace cfp::inline v0_1 {

/// A plan and what the one evaluator says of it.
struct evaluated {
  plan p;              ///< its program is lowered, ordered and its memory planned, if `whole`
  timeline when;       ///< milliseconds of a step
  schedule order;      ///< of its program
  long peak = 0;       ///< bytes of a device
  bool fits = true;    ///< within the limit
  bool whole = true;   ///< or priced by a program with fewer of its equal segments: neither program nor sharding yet
  double seconds = 0;  ///< that finding it took
  double gap = 0;      ///< how far its sum of parts may be above the least, relative to it; infinite: nobody knows
};

/// The plans of one mesh, priced alike.
struct priced_plans {
  std::vector<evaluated> candidates;  ///< found by sums of parts, the one that counts all that is communicated first
  std::vector<evaluated> usual, alpa;
  cost_graph sums;                       ///< of parts, that plans were found by
  bool limited = false;                  ///< the best plan by sums of parts does not fit
  double free_ms = 0;                    ///< milliseconds that plan takes; 0: nobody knows
  long least = 0;                        ///< bytes of the leanest plan that was evaluated
  std::optional<std::int64_t> fitted{};  ///< bytes, the highest limit of sums of parts within which a program fitted
  /// Milliseconds that no sum of parts is below, all that is communicated counted, whatever memory it takes.
  double bound = -std::numeric_limits<double>::infinity();

  /// The fastest that fits of some, or nullptr.
  static const evaluated* fastest(const std::vector<evaluated>& plans) {
    const evaluated* best = nullptr;
    for (const evaluated& e : plans)
      if (e.fits && (best == nullptr || e.when.ms < best->when.ms)) best = &e;
    return best;
  }
  /// The plan to take: the fastest that fits of all.
  const evaluated* found() const {
    const evaluated* best = nullptr;
    for (const std::vector<evaluated>* plans : {&candidates, &usual, &alpa})
      if (const evaluated* e = fastest(*plans); e != nullptr && (best == nullptr || e->when.ms < best->when.ms))
        best = e;
    return best;
  }
  /// Milliseconds of the fastest of all, whether it fits or not; 0: nobody knows.
  double fastest_ms() const {
    double out = free_ms;
    for (const std::vector<evaluated>* plans : {&candidates, &usual, &alpa})
      for (const evaluated& e : *plans) out = out > 0 ? std::min(out, e.when.ms) : e.when.ms;
    return out;
  }
  evaluated* found() { return const_cast<evaluated*>(std::as_const(*this).found()); }
};

}  // namespace cfp
