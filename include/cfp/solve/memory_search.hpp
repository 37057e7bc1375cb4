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
    int visits = 0;

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
    const std::int64_t floor = levels_[present.low];
    const problem narrowed = narrow(floor, levels_[present.high]);
    const auto least = least_sum(memory_form(narrowed), options_, meter_);
    if (!least || least->sum > limit_ - floor) return;
    elimination e(narrowed, options_.max_entries / 4, meter_.left() / 8);
    const plan_sums start = sums(narrowed, least->plan);
    if (start.time == infinite_time || start.memory > limit_ - floor) {  // only if tables were split
      meter_.spend(e.work());
      return give_up({std::max(present.bound, e.run(0)), 0, present.low, present.high});
    }
    const std::int64_t capacity = limit_ - floor - narrowed.base_memory;
    const priced_bound priced = find_memory_price(narrowed, e, {capacity, goal(0), present.price}, least->plan, meter_);
    const double all_memory = priced.price * static_cast<double>(capacity);
    band now = present;
    now.price = priced.price;
    now.bound = std::max(now.bound, priced.bound - rounding(priced.bound, all_memory));

    const bool fits = best_.offer(narrowed, priced.within);
    plan_indices improved = priced.within;
    local_search(narrowed).improve(improved, limit_);
    best_.offer(narrowed, improved);
    if ((fits && priced.settled) || now.bound >= goal(all_memory)) return;
    if (!fits) {  // so its largest transient is above the floor, and the band can be divided
      divide(now, sums(narrowed, priced.within).transient);
    } else if (e.exact()) {
      search(narrowed, e, now);
    } else {
      give_up(now);
    }
  }

  void give_up(const band& b) { unresolved_ = std::min(unresolved_, b.bound); }

  /// Halfway between the band's floor and a level of it above the floor.
  void divide(const band& b, std::int64_t level) {
    const std::int64_t middle = levels_[b.low] + (level - levels_[b.low] + 1) / 2;
    const auto above = std::lower_bound(levels_.begin(), levels_.end(), middle) - levels_.begin();
    bands_.push({b.bound, b.price, b.low, static_cast<std::size_t>(above) - 1});
    bands_.push({b.bound, b.price, static_cast<std::size_t>(above), b.high});
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

  /// Finds the fastest plan of a band, or raises its bound and puts it back. `wide_e` was run at its price.
  void search(const problem& wide, elimination& wide_e, band now) {
    const std::int64_t floor = levels_[now.low];
    const double all_memory = now.price * static_cast<double>(limit_ - floor - wide.base_memory);
    const problem p = without_hopeless(wide, wide_e, now.price, goal(all_memory));
    if (p.dead) return;
    elimination e(p, options_.max_entries / 4, infinite_time);
    if (!e.exact()) return give_up(now);
    meter_.spend(4 * e.work());
    e.run(now.price);
    e.run_through();
    pareto_search labels(p, e, now.price, limit_ - p.base_memory, floor, options_.max_entries / 8, meter_);

    // First with small sets, for a good plan. Then only below targets that rise from the bound: what a target
    // cuts off is slower than it, so either the fastest plan is found or the target is the new bound.
    const auto quickly = [&](std::size_t max_labels) {
      const pareto_outcome outcome = labels.run(goal(all_memory), max_labels, infinite_time);
      if (!outcome.plan.empty()) best_.offer(p, outcome.plan);
      return outcome.complete && outcome.open >= goal(all_memory);
    };
    if (quickly(8)) return;
    const bool divisible = now.low < now.high;
    const double first_bound = now.bound;
    for (const double fraction : {0.0625, 0.25, 1.0}) {
      const double target = std::max(now.bound, first_bound + fraction * (goal(all_memory) - first_bound));
      const double max_work = divisible ? divisible_work + 100 * e.work() : infinite_time;
      const pareto_outcome outcome = labels.run(target, std::numeric_limits<std::size_t>::max(), max_work);
      if (!outcome.complete) {
        if (divisible && !meter_.over()) return divide(now, levels_[now.high]);
        if (!quickly(100)) give_up(now);
        return;
      }
      if (!outcome.plan.empty()) best_.offer(p, outcome.plan);
      now.bound = target;
      if (now.bound >= goal(all_memory)) return;
      const bool others_first = !bands_.empty() && bands_.top().bound < now.bound;
      if (fraction == 0.25 && others_first && ++now.visits <= max_visits) return bands_.push(now);
    }
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

  static constexpr double divisible_work = 3e7;  // steps after which a band is divided rather than searched on
  static constexpr int max_visits = 3;           // so often a band is put back because others look better

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
