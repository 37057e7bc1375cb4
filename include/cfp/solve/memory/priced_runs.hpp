// Plans that take least at prices of memory, kept for every limit to come: the price of memory, not the limit, is what
// they depend on.
#pragma once

#include <cfp/solve/exact/run_elimination.hpp>
#include <cfp/solve/memory/budget.hpp>
#include <cfp/solve/memory/choice_bounds.hpp>
#include <cfp/solve/problem.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace cfp::inline v0_1::detail {

/// Choices that a plan within a limit can have, no transient above `most`.
inline problem within_limit(const problem& p, std::int64_t limit,
                            std::int64_t most = std::numeric_limits<std::int64_t>::max()) {
  choice_mask keep = keep_all(p);
  for (std::size_t n = 0; n < p.nodes.size(); ++n) {
    const problem_node& node = p.nodes[n];
    for (std::size_t c = 0; c < node.size(); ++c)
      keep[n][c] = node.transient[c] <= most && node.memory[c] + node.transient[c] + p.base_memory <= limit;
  }
  return keep_only(p, keep);
}

/// Plans that are looked for: within a limit, their largest transient in a range.
struct plan_range {
  std::int64_t limit;
  std::int64_t floor;
  std::int64_t most;
};

class priced_runs {
 public:
  /// `p` has no choice dropped that a memory limit could ask for.
  explicit priced_runs(const problem& p) : p_(p) {}

  /// A plan, of those in range and possibly others, that has the least time + price * memory; none if no plan is in
  /// range. Choices are those of the cost graph. What only the price makes dear is left out before tables are made.
  std::vector<int> at(double price, const plan_range& range, const solve_options& options, work_meter& meter) {
    problem q = within_limit(p_, range.limit, range.most);
    if (q.dead) return none(price, range);
    const double base = price * static_cast<double>(q.base_memory - p_.base_memory);
    for (problem_node& node : q.nodes) {
      for (std::size_t c = 0; c < node.size(); ++c) node.time[c] += price * static_cast<double>(node.memory[c]);
      node.memory.assign(node.size(), 0);
      node.transient.assign(node.size(), 0);
    }
    q = without_dominated(std::move(q), false);
    if (q.dead) return none(price, range);
    const auto finder = make_plan_finder(q, options.max_entries / 4, meter.left() / 2, options);
    meter.spend(finder->work());
    const double value = finder->run(0);
    if (value == infinite_time) return none(price, range);
    runs_.push_back({price, range, value + base});
    plans_.push_back(original_choices(q, finder->plan()));
    return plans_.back();
  }

  /// No plan in range takes less time.
  [[nodiscard]] double bound(const plan_range& range) const {
    double best = -infinite_time;
    for (const priced& r : runs_) {
      if (!r.covers(range)) continue;
      if (r.value == infinite_time) return infinite_time;
      const double unused = r.price * static_cast<double>(range.limit - range.floor - p_.base_memory);
      const double time = r.value - unused;
      best = std::max(best, time - rounding(time, unused));
    }
    return best;
  }

  /// Whether plans in range were sought at a price.
  [[nodiscard]] bool known(double price, const plan_range& range) const {
    return std::any_of(runs_.begin(), runs_.end(), [&](const priced& r) {
      return r.covers(range) && std::fabs(price - r.price) <= 1e-6 * std::fabs(price);
    });
  }

  /// Plans that are worth a mixture, those of all runs among them.
  [[nodiscard]] const std::vector<std::vector<int>>& plans() const { return plans_; }
  void add(std::vector<int> choices) { plans_.push_back(std::move(choices)); }

  /// The problem with only the choices that those plans make.
  [[nodiscard]] problem mixture(const plan_range& range) const {
    choice_mask keep(p_.nodes.size());
    for (std::size_t n = 0; n < p_.nodes.size(); ++n) {
      const std::vector<int>& all = p_.nodes[n].original;
      keep[n].assign(all.size(), 0);
      for (const std::vector<int>& plan : plans_) {
        const auto at = std::lower_bound(all.begin(), all.end(), plan[n]);
        if (at != all.end() && *at == plan[n]) keep[n][static_cast<std::size_t>(at - all.begin())] = 1;
      }
    }
    problem few = keep_only(p_, keep);
    if (!few.dead) few = within_limit(few, range.limit, range.most);
    return without_dominated(std::move(few), true);
  }

 private:
  struct priced {
    double price;
    plan_range range;
    double value;  // of time + price * memory no plan in range has less, the problem's base left out

    [[nodiscard]] bool covers(const plan_range& r) const { return r.limit <= range.limit && r.most <= range.most; }
  };

  std::vector<int> none(double price, const plan_range& range) {
    runs_.push_back({price, range, infinite_time});
    return {};
  }

  const problem& p_;
  std::vector<priced> runs_;
  std::vector<std::vector<int>> plans_;
};

}  // namespace cfp::detail
