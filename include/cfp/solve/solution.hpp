#pragma once

// What a solver answers.

#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

namespace cfp::inline v0_1 {

/// The answer to a cost graph. There are four kinds:
///
/// | feasible | optimal | meaning                                                                      |
/// |----------|---------|------------------------------------------------------------------------------|
/// | true     | true    | `choices` is a best plan (its time is the optimum up to a relative 1e-10)      |
/// | true     | false   | the budget ran out: `choices` is the best plan found, no plan beats `bound`   |
/// | false    | true    | proven: no plan keeps the memory limit; or, of a finite bound, none is faster |
/// | false    | false   | the budget ran out before a plan was found; there may be one                  |
struct solution {
  bool feasible = false;
  std::vector<int> choices;                               ///< one per node; empty if not feasible
  double time = std::numeric_limits<double>::infinity();  ///< of `choices`, as `evaluate` gives it
  std::int64_t memory = 0;                                ///< of `choices`, as `evaluate` gives it; bytes
  bool optimal = false;
  double bound = -std::numeric_limits<double>::infinity();  ///< no plan within the limit takes less time

  /// Set if memory is known to be what makes the graph infeasible: the least memory that any plan of finite
  /// time needs, in bytes, so that a caller can say by how much the limit misses. Exact, unless `solve` ran
  /// out of budget while computing it; then it is a proven lower bound, itself above the limit.
  std::optional<std::int64_t> least_memory;

  /// How far `time` may be above the optimum, relative to `time`: 0 if optimal, +infinity if nothing is
  /// known.
  [[nodiscard]] double gap() const {
    if (optimal || time == bound) return 0;
    if (!feasible || time == 0) return std::numeric_limits<double>::infinity();
    return (time - bound) / std::fabs(time);
  }
};

}  // namespace cfp
