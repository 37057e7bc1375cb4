// The fastest plan whose program keeps a limit of memory.
#pragma once

#include <cfp/plan/folded_decisions.hpp>
#include <cfp/plan/machine_options.hpp>
#include <cfp/plan/memory_limit.hpp>
#include <cfp/plan/priced_plans.hpp>
#include <cfp/solve/exact/exact.hpp>

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

namespace cfp::inline v0_1 {

namespace detail {

/// What `by` solves of folded decisions, for all decisions.
template <class Solve>
solution solved(const machine_options& options, const folding& folded, const Solve& by) {
  const stage_timer solving(options.clock, stage::solve);
  return folded.all(by());
}

}  // namespace detail

class limited_search {
 public:
  /// Folded decisions and options must outlive this. `estimate` prices a plan by its program. `fitted`: what another
  /// search of the same decisions held sums of parts to, to begin with.
  limited_search(const folding& folded, const machine_options& options,
                 std::function<evaluated(const std::vector<int>&)> estimate, std::optional<std::int64_t> fitted = {})
      : folded_(folded), options_(options), estimate_(std::move(estimate)), fitted_(fitted) {}

  /// Of the plans that are fastest by sums of parts within about the limit: what a program needs is about, but not
  /// quite, the sum of its parts. `of_all`: all that is communicated is counted.
  std::optional<evaluated> fastest(const cost_graph& sums, bool of_all) {
    const cost_graph searched = folded_.of(sums);
    limit_solver solver(searched);
    std::optional<evaluated> best = fastest(solver, limits_of_sums(options_.memory, fitted_), of_all);
    if (!best && options_.known_limit && !options_.over())
      best = fastest(solver, limits_of_sums(options_.memory, options_.known_limit), false);
    return best;
  }

  /// Milliseconds that no plan is below by sums of parts, whatever memory it takes.
  double bound() const { return bound_; }
  /// Whether the fastest by sums of parts does not fit.
  bool limited() const { return limited_; }
  /// Milliseconds of its program.
  double free_ms() const { return free_ms_; }
  /// Bytes that sums of parts were held to when programs last fitted.
  std::optional<std::int64_t> fitted() const { return fitted_; }

 private:
  std::optional<evaluated> fastest(limit_solver& solver, limits_of_sums limits, bool of_all) {
    std::optional<evaluated> best;
    for (bool more = true; more; more = more && !options_.over()) {
      const solution s = detail::solved(options_, folded_, [&] {
        return solver.solve(limits.now(), options_.of_solver(limits.now() ? options_.limited_share : 1));
      });
      const bool without_limit = !limits.now();
      if (of_all && without_limit) bound_ = s.bound;
      if (!s.feasible) {
        more = limits.none(s.least_memory);
        continue;
      }
      if (best && best->p.choices == s.choices) break;
      evaluated e = estimate_(s.choices);
      e.gap = s.gap();
      if (of_all && without_limit) limited_ = !e.fits, free_ms_ = e.when.ms;
      more = limits.tried(s, e.peak);
      if (e.fits && (!best || e.when.ms < best->when.ms)) best = std::move(e);
    }
    if (limits.fitted()) fitted_ = limits.fitted();
    return best;
  }

  const folding& folded_;
  const machine_options& options_;
  const std::function<evaluated(const std::vector<int>&)> estimate_;
  double bound_ = -std::numeric_limits<double>::infinity();
  bool limited_ = false;
  double free_ms_ = 0;
  std::optional<std::int64_t> fitted_;
};

}  // namespace cfp
