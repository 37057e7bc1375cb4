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
#include <utility>
#include <vector>

namespace cfp::inline v0_1::detail {

/// Choices that a plan within a limit can have.
inline problem within_limit(const problem& p, std::int64_t limit) {
  choice_mask keep = keep_all(p);
  for (std::size_t n = 0; n < p.nodes.size(); ++n) {
    const problem_node& node = p.nodes[n];
    for (std::size_t c = 0; c < node.size(); ++c)
      keep[n][c] = node.memory[c] + node.transient[c] + p.base_memory <= limit;
  }
  return keep_only(p, keep);
}

class priced_runs {
 public:
  /// `p` has no choice dropped that a memory limit could ask for.
  explicit priced_runs(const problem& p) : p_(p) {}

  /// A plan, of plans within `limit` and possibly beyond, that has the least time + price * memory; none if there is no
  /// plan. Choices are those of the cost graph. What only the price makes dear is left out before tables are made.
  std::vector<int> at(double price, std::int64_t limit, const solve_options& options, work_meter& meter) {
    problem q = within_limit(p_, limit);
    const double base = price * static_cast<double>(q.base_memory - p_.base_memory);
    for (problem_node& node : q.nodes) {
      for (std::size_t c = 0; c < node.size(); ++c) node.time[c] += price * static_cast<double>(node.memory[c]);
      node.memory.assign(node.size(), 0);
      node.transient.assign(node.size(), 0);
    }
    q = without_dominated(std::move(q), false);
    if (q.dead) return {};
    const auto finder = make_plan_finder(q, options.max_entries / 4, meter.left() / 2, options);
    meter.spend(finder->work());
    const double value = finder->run(0);
    if (value == infinite_time) return {};
    runs_.push_back({price, limit, value + base});
    plans_.push_back(original_choices(q, finder->plan()));
    return plans_.back();
  }

  /// No plan within `limit` whose largest transient is at least `floor` takes less time.
  [[nodiscard]] double bound(std::int64_t limit, std::int64_t floor) const {
    double best = -infinite_time;
    for (const priced& r : runs_) {
      if (limit > r.limit) continue;
      const double unused = r.price * static_cast<double>(limit - floor - p_.base_memory), time = r.value - unused;
      best = std::max(best, time - rounding(time, unused));
    }
    return best;
  }

  /// Whether plans within `limit` were sought at a price.
  [[nodiscard]] bool known(double price, std::int64_t limit) const {
    return std::any_of(runs_.begin(), runs_.end(), [&](const priced& r) {
      return limit <= r.limit && std::fabs(price - r.price) <= 1e-6 * std::fabs(price);
    });
  }

  /// Plans that are worth a mixture, those of all runs among them.
  [[nodiscard]] const std::vector<std::vector<int>>& plans() const { return plans_; }
  void add(std::vector<int> choices) { plans_.push_back(std::move(choices)); }

  /// The problem with only the choices that those plans make.
  [[nodiscard]] problem mixture(std::int64_t limit) const {
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
    if (!few.dead) few = within_limit(few, limit);
    return without_dominated(std::move(few), true);
  }

 private:
  struct priced {
    double price;
    std::int64_t limit;  // plans within it are not below
    double value;        // of time + price * memory, the problem's base left out
  };

  const problem& p_;
  std::vector<priced> runs_;
  std::vector<std::vector<int>> plans_;
};

}  // namespace cfp::detail
