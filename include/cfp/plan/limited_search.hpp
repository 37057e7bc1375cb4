// The fastest plan whose program keeps a limit of memory.
#pragma once

#include <cfp/plan/folded_decisions.hpp>
#include <cfp/plan/machine_options.hpp>
#include <cfp/plan/memory_limit.hpp>
#include <cfp/plan/priced_plans.hpp>
#include <cfp/solve/exact/exact.hpp>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <set>
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

/// Only plans that take less are looked for. Sums of parts are taken to be as far from what programs take as one plan's
/// are; without choices they are those of the fastest plan.
struct time_limit {
  double ms = std::numeric_limits<double>::infinity();
  std::vector<int> choices{};
  double program_ms = 0;  ///< of the plan that makes them

  /// That of a plan, if there is one, or of others, and `more` of it.
  static time_limit near(const evaluated* plan, double of_others, double more) {
    if (plan == nullptr) return {};
    return {std::min(plan->when.ms, of_others) * (1 + more), plan->p.choices, plan->when.ms};
  }
};

class limited_search {
 public:
  /// Folded decisions and options must outlive this. `estimate` prices a plan by its program.
  limited_search(const folding& folded, const machine_options& options,
                 std::function<evaluated(const std::vector<int>&)> estimate, time_limit within = {})
      : folded_(folded), options_(options), estimate_(std::move(estimate)), within_(std::move(within)) {}

  /// Of the plans that are fastest by sums of parts within about the limit: what a program needs is about, but not
  /// quite, the sum of its parts. `of_all`: all that is communicated is counted.
  std::optional<evaluated> fastest(const cost_graph& sums, bool of_all) { return fastest(sums, sums, of_all); }
  /// The same of some choices of all.
  std::optional<evaluated> fastest(const cost_graph& sums, const cost_graph& of_all_choices, bool of_all) {
    const cost_graph searched = folded_.of(sums);
    limit_solver solver(searched);
    std::optional<evaluated> best = fastest(solver, of_all_choices, limits_of_sums(options_.memory, fitted_), of_all);
    if (!best && options_.known_limit && !options_.over())
      best = fastest(solver, of_all_choices, limits_of_sums(options_.memory, options_.known_limit), false);
    return best;
  }

  /// Milliseconds that no plan is below by sums of parts, whatever memory it takes.
  double bound() const { return bound_; }
  /// Whether the fastest by sums of parts does not fit.
  bool limited() const { return limited_; }
  /// Milliseconds of its program.
  double free_ms() const { return free_ms_; }
  /// Bytes that no sum of parts is below, if nothing was found to fit; 0: nobody knows.
  std::int64_t least_of_sums() const { return least_of_sums_.value_or(0); }
  /// Whether that is so far above the limit, four times what sums are unsure by, that no program is looked for.
  bool hopeless() const {
    return static_cast<double>(least_of_sums()) > (1 + 4 * options_.unsure) * static_cast<double>(options_.memory);
  }
  /// Whether all that was found, whatever the limit, is among the choices of these sums: of those alone nothing is
  /// better by more than solutions are near the best.
  bool was_among(const cost_graph& some) const {
    return std::all_of(seen_.begin(), seen_.end(), [&](const std::vector<int>& choices) {
      return folded_.time(some, choices) < std::numeric_limits<double>::infinity();
    });
  }
  /// Bytes that sums of parts were held to when programs last fitted.
  std::optional<std::int64_t> fitted() const { return fitted_; }

 private:
  std::optional<evaluated> fastest(limit_solver& solver, const cost_graph& sums, limits_of_sums limits, bool of_all) {
    std::optional<evaluated> best;
    for (bool more = true; more; more = more && !options_.over()) {
      const solution s = detail::solved(options_, folded_, [&] {
        solve_options how = options_.of_solver(limits.now() ? options_.limited_share : 1);
        if (limits.now()) how.below = below(sums);
        return solver.solve(limits.now(), how);
      });
      const bool without_limit = !limits.now();
      if (of_all && without_limit) bound_ = s.bound;
      if (!s.feasible) {
        const bool too_slow = s.optimal && s.bound < std::numeric_limits<double>::infinity();
        if (s.least_memory) least_of_sums_ = s.least_memory;
        more = !too_slow && limits.none(s.least_memory);
        continue;
      }
      if (best && best->p.choices == s.choices) break;
      seen_.insert(s.choices);
      evaluated e = estimate_(s.choices);
      e.gap = s.gap();
      if (of_all && without_limit) limited_ = !e.fits, free_ms_ = e.when.ms;
      if (without_limit && within_.choices.empty()) within_.choices = s.choices, within_.program_ms = e.when.ms;
      more = limits.tried(s, e.peak);
      if (e.fits && (!best || e.when.ms < best->when.ms)) best = std::move(e);
    }
    if (limits.fitted()) fitted_ = limits.fitted();
    return best;
  }

  // What sums of parts of plans to look for are below.
  double below(const cost_graph& sums) const {
    if (within_.choices.empty()) return std::numeric_limits<double>::infinity();
    return within_.ms * (folded_.time(sums, within_.choices) / within_.program_ms);
  }

  const folding& folded_;
  const machine_options& options_;
  const std::function<evaluated(const std::vector<int>&)> estimate_;
  double bound_ = -std::numeric_limits<double>::infinity();
  bool limited_ = false;
  double free_ms_ = 0;
  std::optional<std::int64_t> fitted_, least_of_sums_;
  time_limit within_;
  std::set<std::vector<int>> seen_;
};

}  // namespace cfp
