// Which plan when, where conditions change: lengths of sequences from step to step, links that get slower, devices that
// are lost or added. To change the plan takes time too.
#pragma once

#include <cfp/core/bad_input.hpp>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

namespace cfp::inline v0_1 {

struct course_table {
  std::vector<std::string> conditions{}, plans{};
  std::vector<std::vector<double>> ms{};      ///< of a step, of each plan by condition; infinity: it does not run there
  std::vector<std::vector<double>> change{};  ///< milliseconds from each plan to each; none: it takes no time

  double change_ms(int from, int to) const {
    return change.empty() || from == to ? 0 : change[static_cast<std::size_t>(from)][static_cast<std::size_t>(to)];
  }
  double step_ms(int plan, int condition) const {
    return ms[static_cast<std::size_t>(plan)][static_cast<std::size_t>(condition)];
  }
  /// The fastest plan there; -1: none runs.
  int fastest(int condition) const {
    int best = -1;
    for (std::size_t p = 0; p < plans.size(); ++p)
      if (const double takes = step_ms(static_cast<int>(p), condition); takes < std::numeric_limits<double>::infinity())
        if (best < 0 || takes < step_ms(best, condition)) best = static_cast<int>(p);
    return best;
  }
};

/// So many steps under one condition.
struct stretch {
  int condition = 0;
  long steps = 1;
};

struct course {
  std::vector<int> plans{};  ///< of each stretch; none: for some no plan runs
  double ms = std::numeric_limits<double>::infinity();
  double changing_ms = 0;  ///< of that, what changes take
  int changes = 0;
};

namespace detail {

inline void check(const course_table& t, const std::vector<stretch>& trace) {
  const auto refuse = [](const std::string& what) { throw bad_input("the table of plans and conditions " + what); };
  if (t.plans.empty() || t.conditions.empty()) refuse("has no plan or no condition");
  if (t.ms.size() != t.plans.size()) refuse("must have times of each plan");
  for (const std::vector<double>& row : t.ms) {
    if (row.size() != t.conditions.size()) refuse("must have a time of each plan for each condition");
    for (const double takes : row)
      if (!(takes > 0)) refuse("has a step of " + std::to_string(takes) + " ms; it must be above 0");
  }
  if (!t.change.empty() && t.change.size() != t.plans.size()) refuse("must have changes from each plan, or none");
  for (const std::vector<double>& row : t.change) {
    if (row.size() != t.plans.size()) refuse("must have a change from each plan to each");
    for (const double takes : row)
      if (!(takes >= 0)) refuse("has a change of " + std::to_string(takes) + " ms; it must be 0 or more");
  }
  for (const stretch& s : trace)
    if (s.condition < 0 || s.condition >= static_cast<int>(t.conditions.size()) || s.steps < 0)
      throw bad_input("a stretch of " + std::to_string(s.steps) + " steps under condition " +
                      std::to_string(s.condition) + ": there are " + std::to_string(t.conditions.size()) +
                      ", counted from 0, and steps are 0 or more");
}

inline course course_of(const course_table& t, const std::vector<stretch>& trace, std::vector<int> plans, int before) {
  course out;
  out.ms = 0;
  for (std::size_t s = 0; s < trace.size(); ++s) {
    const int last = s > 0 ? plans[s - 1] : before;
    if (last >= 0 && last != plans[s]) out.changing_ms += t.change_ms(last, plans[s]), ++out.changes;
    out.ms += static_cast<double>(trace[s].steps) * t.step_ms(plans[s], trace[s].condition);
  }
  out.ms += out.changing_ms;
  out.plans = std::move(plans);
  return out;
}

}  // namespace detail

/// The course of the least time where all that comes is known: exact, by dynamic programming. Changes happen where
/// conditions do. `before`: the plan to begin with; -1: any, for nothing.
inline course best_course(const course_table& t, const std::vector<stretch>& trace, int before = -1) {
  detail::check(t, trace);
  constexpr double never = std::numeric_limits<double>::infinity();
  const auto n = static_cast<int>(t.plans.size());
  std::vector<double> least(t.plans.size(), before < 0 ? 0 : never);
  if (before >= 0) least[static_cast<std::size_t>(before)] = 0;
  std::vector<std::vector<int>> from;
  for (std::size_t s = 0; s < trace.size(); ++s) {
    std::vector<double> next(t.plans.size(), never);
    from.emplace_back(t.plans.size(), -1);
    for (int to = 0; to < n; ++to)
      for (int was = 0; was < n; ++was) {
        const bool is_free = s == 0 && before < 0;
        const double steps = static_cast<double>(trace[s].steps),
                     ms = steps > 0 ? steps * t.step_ms(to, trace[s].condition) : 0,
                     all = least[static_cast<std::size_t>(was)] + (is_free ? 0 : t.change_ms(was, to)) + ms;
        if (all < next[static_cast<std::size_t>(to)])
          next[static_cast<std::size_t>(to)] = all, from.back()[static_cast<std::size_t>(to)] = was;
      }
    least = std::move(next);
  }
  const auto last = std::min_element(least.begin(), least.end());
  if (!(*last < never)) return {};
  std::vector<int> plans(trace.size());
  int at = static_cast<int>(last - least.begin());
  for (std::size_t s = trace.size(); s-- > 0; at = from[s][static_cast<std::size_t>(at)]) plans[s] = at;
  return detail::course_of(t, trace, std::move(plans), before);
}

/// A policy that knows only what was. It keeps its plan while that is slower than the fastest by no more than a share
/// (ParaDySe's 5%, arXiv 2511.13198); then until what it lost by that is as much as the change takes, since more loss
/// may not come; and where it does not run it changes at once.
class course_policy {
 public:
  explicit course_policy(const course_table& t, int first = -1, double keep = 0.05)
      : table_(t), now_(first), keep_(keep) {
    detail::check(t, {});
  }

  /// The plan of the next step under a condition; -1: none runs.
  int next(int condition) {
    const int best = table_.fastest(condition);
    if (best < 0) return -1;
    if (now_ < 0) return now_ = best;
    const double mine = table_.step_ms(now_, condition), least = table_.step_ms(best, condition);
    if (!(mine < std::numeric_limits<double>::infinity())) return change_to(best);
    if (mine <= least * (1 + keep_)) return now_;
    lost_ += mine - least;
    return lost_ > table_.change_ms(now_, best) ? change_to(best) : now_;
  }

 private:
  int change_to(int plan) {
    lost_ = 0;
    return now_ = plan;
  }

  const course_table& table_;
  int now_;
  const double keep_;
  double lost_ = 0;  // milliseconds since the last change
};

/// What a policy takes for a trace, step by step. Where no plan runs the course ends: `ms` is infinite.
inline course simulate(const course_table& t, const std::vector<stretch>& trace, int first = -1, double keep = 0.05) {
  detail::check(t, trace);
  course_policy policy(t, first, keep);
  course out;
  double ms = 0;
  int last = first;
  for (const stretch& s : trace)
    for (long step = 0; step < s.steps; ++step) {
      const int plan = policy.next(s.condition);
      if (plan < 0) return {};
      if (last >= 0 && plan != last) out.changing_ms += t.change_ms(last, plan), ++out.changes;
      ms += t.step_ms(plan, s.condition);
      if (step + 1 == s.steps) out.plans.push_back(plan);
      last = plan;
    }
  out.ms = ms + out.changing_ms;
  return out;
}

}  // namespace cfp
