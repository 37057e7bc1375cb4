#pragma once

// The fastest plan within a memory limit.
//
// A plan needs (sum of memory) + (largest transient). The search goes over bands of levels for the largest
// transient, most promising first. In a band, transients count at least as its lower end, and choices above its
// upper end are out; what is left is priced (memory_price.hpp), and either the band is hopeless, or it is divided
// where the priced plan's transient is, or it is searched (pareto.hpp).

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <queue>
#include <vector>

#include "budget.hpp"
#include "dominance.hpp"
#include "elimination.hpp"
#include "incumbent.hpp"
#include "least_memory.hpp"
#include "memory_price.hpp"
#include "pareto.hpp"
#include "problem.hpp"

namespace cfp::detail {

class memory_search {
 public:
  /// Plans go to `best`; `p` must have no choice dropped that a memory limit could ask for.
  memory_search(const problem& p, std::int64_t limit, const solve_options& options, incumbent& best,
                work_meter& meter)
      : p_(p), limit_(limit), options_(options), best_(best), meter_(meter), levels_(transient_levels(p)) {}

  /// Searches, given a lower bound on the time of every plan; returns a better one: the time of the best plan,
  /// unless the budget ran out.
  double run(double bound) {
    bands_.push({bound, 0, 0, levels_.size() - 1});
    while (!bands_.empty() && bands_.top().bound < goal(0) && !meter_.over()) {
      const band next = bands_.top();
      bands_.pop();
      look_at(next);
    }
    const double rest = bands_.empty() ? infinite_time : bands_.top().bound;
    return std::min({rest, unresolved_, best_.time()});
  }

 private:
  struct band {
    double bound;  // on time
    double price;  // a guess
    std::size_t low, high;  // first and last level

    bool operator<(const band& other) const {  // the queue takes the greatest: the least bound
      return bound != other.bound ? bound > other.bound : low > other.low;
    }
  };

  /// Rounding in a bound that is a difference of priced sums. `priced` is the size of what cancels out.
  static double rounding(double time, double priced) { return 1e-13 * (std::fabs(time) + priced); }

  /// A bound from here on rules a plan out; `priced` as in `rounding`.
  [[nodiscard]] double goal(double priced) const {
    const double time = best_.time();
    return time == infinite_time ? time : time - best_.resolution() + rounding(time, priced);
  }

  void look_at(const band& present) {
    const auto [parent_bound, price, low, high] = present;
    double bound = parent_bound;
    const std::int64_t floor = levels_[low];
    const problem narrowed = narrow(floor, levels_[high]);
    const auto least = least_sum(memory_form(narrowed), options_, meter_);
    if (!least || least->sum > limit_ - floor) return;
    elimination e(narrowed, options_.max_entries / 4, meter_.left() / 8);
    const plan_sums start = sums(narrowed, least->plan);
    if (start.time == infinite_time || start.memory > limit_ - floor) {  // only if tables were split
      meter_.spend(e.work());
      unresolved_ = std::min(unresolved_, std::max(bound, e.run(0)));
      return;
    }
    const std::int64_t capacity = limit_ - floor - narrowed.base_memory;
    const priced_bound priced = find_memory_price(narrowed, e, {capacity, goal(0), price}, least->plan, meter_);
    const double all_memory = priced.price * static_cast<double>(capacity);
    bound = std::max(bound, priced.bound - rounding(priced.bound, all_memory));

    const bool fits = best_.offer(narrowed, priced.within);
    plan_indices improved = priced.within;
    local_search(narrowed).improve(improved, limit_);
    best_.offer(narrowed, improved);
    if ((fits && priced.settled) || bound >= goal(all_memory)) return;
    if (!fits) {  // so its largest transient is above the floor: divide between the two
      const std::int64_t middle = floor + (sums(narrowed, priced.within).transient - floor + 1) / 2;
      const auto above = std::lower_bound(levels_.begin(), levels_.end(), middle) - levels_.begin();
      bands_.push({bound, priced.price, low, static_cast<std::size_t>(above) - 1});
      bands_.push({bound, priced.price, static_cast<std::size_t>(above), high});
    } else if (e.exact()) {
      search(narrowed, e, priced.price, floor, bound);
    } else {
      unresolved_ = std::min(unresolved_, bound);
    }
  }

  /// The choices of a band that can be part of a plan within the limit.
  [[nodiscard]] problem narrow(std::int64_t floor, std::int64_t most) const {
    problem banded = with_transients_in(p_, floor, most);
    if (banded.dead) return banded;
    choice_mask keep = keep_all(banded);
    for (std::size_t n = 0; n < banded.nodes.size(); ++n) {
      const problem_node& node = banded.nodes[n];
      for (std::size_t c = 0; c < node.size(); ++c) {
        keep[n][c] = node.memory[c] + node.transient[c] + banded.base_memory <= limit_;
      }
    }
    return without_dominated(keep_only(banded, keep), true);
  }

  /// The fastest plan of a band, or what can be proven about it. `e` was run at `price`.
  void search(const problem& wide, elimination& wide_e, double price, std::int64_t floor, double bound) {
    const auto goal_here = [&] { return goal(price * static_cast<double>(limit_ - floor - wide.base_memory)); };
    const problem p = without_hopeless(wide, wide_e, price, goal_here());
    if (p.dead) return;
    elimination e(p, options_.max_entries / 4, infinite_time);
    if (!e.exact()) {
      unresolved_ = std::min(unresolved_, bound);
      return;
    }
    meter_.spend(4 * e.work());
    e.run(price);
    e.run_through();
    const std::int64_t capacity = limit_ - p.base_memory;
    pareto_search labels(p, e, price, capacity, floor, options_.max_entries / 8, meter_);

    // First with small sets, for a good plan. Then only below targets that rise from the bound: what a target
    // cuts off is slower than it, so either the fastest plan is found or the target is the new bound.
    const pareto_outcome quick = labels.run(goal_here(), quick_labels);
    if (!quick.plan.empty()) best_.offer(p, quick.plan);
    if (quick.complete && quick.open >= goal_here()) return;
    const double first_bound = bound;
    for (const double fraction : {0.0625, 0.25, 1.0}) {
      const double goal_now = goal_here();
      if (bound >= goal_now) return;
      const double target = std::max(bound, first_bound + fraction * (goal_now - first_bound));
      const pareto_outcome outcome = labels.run(target, std::numeric_limits<std::size_t>::max());
      if (!outcome.complete) break;
      if (!outcome.plan.empty()) best_.offer(p, outcome.plan);
      bound = target;
      if (fraction == 1.0) return;
    }
    if (bound < goal_here()) unresolved_ = std::min(unresolved_, bound);
  }

  /// `p` without the choices through which no plan within the limit is faster than `goal`.
  [[nodiscard]] problem without_hopeless(const problem& p, elimination& e, double price, double goal) {
    meter_.spend(2 * e.work());
    e.run_through();
    choice_mask keep = keep_all(p);
    for (std::size_t n = 0; n < p.nodes.size(); ++n) {
      for (std::size_t c = 0; c < p.nodes[n].size(); ++c) {
        const std::int64_t room = limit_ - p.base_memory - p.nodes[n].transient[c];
        keep[n][c] = e.through_choice(n, c) - price * static_cast<double>(room) < goal;
      }
    }
    return without_dominated(keep_only(p, keep), true);
  }

  static constexpr std::size_t quick_labels = 8;

  const problem& p_;
  std::int64_t limit_;
  const solve_options& options_;
  incumbent& best_;
  work_meter& meter_;
  std::vector<std::int64_t> levels_;
  std::priority_queue<band> bands_;
  double unresolved_ = infinite_time;  // least bound of the bands given up
};

}  // namespace cfp::detail
