// What finds plans at a price of memory: the plain way, or one that knows of runs of equal segments.
#pragma once

#include <cfp/solve/problem.hpp>

namespace cfp::inline v0_1::detail {

/// The least of (time + price * memory) over all plans of a problem, memory without the base.
class plan_finder {
 public:
  virtual ~plan_finder() = default;
  /// That least; a lower bound if not exact.
  virtual double run(double price) = 0;
  /// Gives an edge of the problem, outside of runs, other times for the runs to come.
  virtual void set_edge(std::size_t e, const std::vector<double>& time) = 0;
  /// A plan that has what `run` returned; if not exact, some plan.
  [[nodiscard]] virtual plan_indices plan() const = 0;
  [[nodiscard]] virtual bool exact() const = 0;
  /// Additions of one run.
  [[nodiscard]] virtual double work() const = 0;
};

}  // namespace cfp::detail
