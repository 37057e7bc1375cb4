#pragma once

// The fastest plan within a memory limit.
//
// A plan needs (sum of memory) + (largest transient). The search goes over bands of levels for the largest
// transient, most promising first. In a band, transients count at least as its lower end, and choices above
// its upper end are out; what is left is priced (memory_price.hpp), and either the band is hopeless, or it is
// divided where the priced plan's transient is, or it is searched (pareto.hpp).

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <queue>
#include <utility>
#include <vector>

#include <cfp/solve/exact/dominance.hpp>
#include <cfp/solve/exact/run_elimination.hpp>
#include <cfp/solve/memory/budget.hpp>
#include <cfp/solve/memory/choice_bounds.hpp>
#include <cfp/solve/memory/incumbent.hpp>
#include <cfp/solve/memory/least_memory.hpp>
#include <cfp/solve/memory/memory_price.hpp>
#include <cfp/solve/memory/pareto.hpp>
#include <cfp/solve/memory/plan_mixture.hpp>
#include <cfp/solve/memory/priced_runs.hpp>
#include <cfp/solve/memory/transient_band.hpp>
#include <cfp/solve/problem.hpp>

namespace cfp::inline v0_1::detail {

class memory_search {
 public:
  /// Plans go to `best`; `p` must have no choice dropped that a memory limit could ask for. `runs`, if given, are of
  /// `p`, and a mixture of plans is what the search begins with.
  memory_search(const problem& p, std::int64_t limit, const solve_options& options, incumbent& best, work_meter& meter,
                priced_runs* runs = nullptr)
      : p_(p), limit_(limit), options_(options), best_(best), meter_(meter), runs_(runs), levels_(transient_levels(p)) {
  }

  /// Searches, given a lower bound on the time of every plan; returns a better one: the time of the best
  /// plan, unless the budget ran out.
  double run(double bound) {
    if (p_.dead) return infinite_time;
    bands_.push({bound, 0, 0, levels_.size() - 1, nullptr});
    while (!bands_.empty() && bands_.top().bound < goal(0) && !meter_.over()) {
      transient_band next = bands_.top();
      bands_.pop();
      try {
        look_at(next);
      } catch (const stopped&) {
        leave(next);
      }
    }
    const double rest = bands_.empty() ? infinite_time : bands_.top().bound;
    return std::min({rest, left_, pruned_ ? goal(0) : best_.time()});
  }

 private:
  /// A bound from here on rules a plan out: it is not enough faster than the best. `priced` as in `rounding`.
  [[nodiscard]] double goal(double priced) const {
    const double time = best_.time();
    if (time == infinite_time) return time;
    const double slack = best_.found() ? std::max(1e-10, options_.gap) * std::fabs(time) : 0;
    return time - slack + rounding(time, priced);
  }

  /// Leaves what is known of the band in it, for when it is stopped.
  void look_at(transient_band& now) {
    if (runs_ != nullptr && !now.known && by_mixture(now)) return;
    const problem p = narrow(now);
    if (p.dead) return;
    const auto finder = make_plan_finder(p, options_.max_entries / 4, meter_.left() / 8, options_);
    if (runs_ != nullptr && !finder->exact()) return leave(now);  // more is known by now
    constexpr double roughly = 0.02;
    const priced_bound priced = find_price(p, *finder, now, roughly);
    if (now.bound >= goal(0) || priced.within.empty()) return leave(now);
    improve(p, priced.within);
    const bool fits = best_.offer(p, priced.within);
    if (now.bound >= goal(0)) return leave(now);
    const std::int64_t transient = sums(p, priced.within).transient;
    if (!fits && options_.gap > 0) return divide(now, transient);  // bounds of choices take longer than prices
    elimination e(p, options_.max_entries / 4, meter_.left() / 8, options_.stop);
    if (e.exact()) now.known = bounds_through(p, e, now.price, now.known.get(), limit_, meter_);
    if (!fits) return divide(now, transient);  // its largest transient is above the floor
    if (!e.exact()) return leave(now);
    search(without_hopeless(p, *now.known), now);
  }

  /// Sets the band's price and raises its bound, to infinity if there is nothing left to find in it. Leaves
  /// `e` run at the price. The plan within is empty if none is known, which is only if tables were split.
  priced_bound find_price(const problem& p, plan_finder& e, transient_band& now, double slack) {
    priced_bound priced;
    const std::int64_t capacity = limit_ - levels_[now.low] - p.base_memory;
    const auto least = least_sum(memory_form(p), options_, meter_);
    if (!least || least->sum - p.base_memory > capacity) {
      now.bound = infinite_time;
      return priced;
    }
    const plan_sums start = sums(p, least->plan);
    if (start.time == infinite_time || start.memory - p.base_memory > capacity) {
      meter_.spend(e.work());
      now.bound = std::max(now.bound, e.run(0));
      return priced;
    }
    priced = find_memory_price(p, e, {capacity, goal(0), now.price, slack}, least->plan, best_, meter_);
    now.price = priced.price;
    now.bound = std::max(now.bound, priced.bound - rounding(priced.bound, now.price * static_cast<double>(capacity)));
    if (priced.settled && best_.offer(p, priced.within)) now.bound = infinite_time;
    return priced;
  }

  /// Raises a band's bound, and looks for good plans in it, by mixing a few. Whether that is all there is to do: the
  /// band is hopeless, or divided. What is near enough leaves little of the budget for proof.
  bool by_mixture(transient_band& now) {
    const plan_range range{limit_, levels_[now.low], std::min(levels_[now.high], limit_)};
    plan_mixture mixed(*runs_, range, options_, best_, meter_);
    mixed.price = now.price;
    const auto look = [&] {
      now.bound = std::max(now.bound, mixed.bound());
      if (now.bound < (1 - options_.gap / 10) * best_.time()) search_among(runs_->mixture(range));
      return now.bound >= goal(0) || meter_.over();
    };
    if (mixed.bound() >= goal(0) && look()) return left_after(now);
    mixed.settle();
    now.price = mixed.price;
    if (look()) return left_after(now);
    for (const std::int64_t level : {best_.transient(), mixed.transient})
      if (levels_[now.low] < level && level <= levels_[now.high]) {
        divide_at(now, level);
        return true;
      }
    for (const auto& [less, more] : {std::pair(0.7, 1.5), std::pair(0.4, 3.0)}) {
      const bool some = mixed.add(less * mixed.price), others = mixed.add(more * mixed.price);
      if ((some || others) && look()) return left_after(now);
    }
    const double near = 4 * options_.gap * std::fabs(best_.time());  // a little more proof is enough
    if (now.bound > best_.time() - near) meter_.spend(0.8 * meter_.left());
    return false;
  }

  bool left_after(const transient_band& b) {
    leave(b);
    return true;
  }

  void search_among(const problem& few) {
    solve_options part = options_;
    part.max_steps = meter_.left() / 8, part.max_seconds = options_.max_seconds / 8;
    part.gap = options_.gap / 10;  // few choices are soon told apart
    work_meter share(part);
    const double before = share.left();
    memory_search(few, limit_, part, best_, share).run(-infinite_time);
    meter_.spend(before - share.left());
  }

  void improve(const problem& p, plan_indices plan) {
    local_search(p).improve(plan, limit_);
    best_.offer(p, plan);
  }

  /// Nothing more is searched for in a band.
  void leave(const transient_band& b) { left_ = std::min(left_, b.bound); }

  /// Halfway between the band's floor and a level of it above the floor.
  void divide(const transient_band& b, std::int64_t level) {
    const std::int64_t middle = levels_[b.low] + (level - levels_[b.low] + 1) / 2;
    divide_at(b, middle);
  }

  void divide_at(const transient_band& b, std::int64_t level) {
    const auto above = std::lower_bound(levels_.begin(), levels_.end(), level) - levels_.begin();
    bands_.push({b.bound, b.price, b.low, static_cast<std::size_t>(above) - 1, b.known});
    bands_.push({b.bound, b.price, static_cast<std::size_t>(above), b.high, b.known});
  }

  /// The choices of a band that can be part of a plan within the limit and faster than the best.
  [[nodiscard]] problem narrow(const transient_band& b) {
    const problem banded = with_transients_in(p_, levels_[b.low], levels_[b.high]);
    if (banded.dead) return banded;
    problem within = within_limit(banded, limit_);
    return b.known ? without_hopeless(within, *b.known) : without_dominated(within, true);
  }

  [[nodiscard]] problem without_hopeless(const problem& p, const choice_bounds& known) {
    pruned_ = true;
    return below(p, known, goal(0));
  }

  /// Finds the fastest plan of a band, given without its hopeless choices, or raises its bound and puts it
  /// back.
  void search(const problem& p, transient_band& now) {
    if (p.dead) return;
    const std::int64_t floor = levels_[now.low];
    elimination e(p, options_.max_entries / 4, infinite_time, options_.stop);
    if (!e.exact()) return leave(now);
    if (find_price(p, e, now, 0).within.empty() || now.bound >= goal(0)) return leave(now);
    const double all_memory = now.price * static_cast<double>(limit_ - floor - p.base_memory);
    meter_.spend(2 * e.work());
    e.run_through();
    pareto_search labels(p, e, now.price, limit_ - p.base_memory, floor, options_.max_entries / 8, meter_);

    // Only plans below targets that rise from the bound: what a target cuts off is slower than it, so either
    // the fastest plan is found or the target is the new bound. Each time first with small sets, for a good
    // plan.
    const bool divisible = now.low < now.high;
    const double max_work = divisible ? divisible_work + 40 * e.work() : infinite_time;
    const double first_bound = now.bound;
    const double first_gap = goal(all_memory) - now.bound;
    for (const double fraction : {1.0 / 64, 1.0 / 16, 1.0 / 4, 1.0}) {
      const auto target = [&] { return std::min(goal(all_memory), first_bound + fraction * first_gap); };
      pareto_outcome outcome = labels.run(target(), few_labels, max_work);
      if (!outcome.plan.empty()) best_.offer(p, outcome.plan);
      if (outcome.complete && outcome.open < target()) {
        outcome = labels.run(target(), std::numeric_limits<std::size_t>::max(), max_work);
        if (!outcome.plan.empty()) best_.offer(p, outcome.plan);
      }
      if (outcome.complete) now.bound = std::max(now.bound, target());
      const double gap = goal(all_memory) - now.bound;
      if (!(gap > 0)) return leave(now);
      if (gap < first_gap / 2 && !meter_.over()) return bands_.push(now);  // many more choices are hopeless now
      if (!outcome.complete) return divisible && !meter_.over() ? divide(now, levels_[now.high]) : leave(now);
      const bool others_first = !bands_.empty() && bands_.top().bound < now.bound;
      if (fraction == 1.0 / 4 && others_first && ++now.visits <= max_visits) return bands_.push(now);
    }
  }

  static constexpr std::size_t few_labels = 10;
  static constexpr double divisible_work = 1e7;  // steps after which a band is divided rather than searched on
  static constexpr int max_visits = 3;           // so often a band is put back because others look better

  const problem& p_;
  std::int64_t limit_;
  const solve_options& options_;
  incumbent& best_;
  work_meter& meter_;
  priced_runs* runs_;
  std::vector<std::int64_t> levels_;
  std::priority_queue<transient_band> bands_;
  double left_ = infinite_time;  // least bound of the bands that were left
  bool pruned_ = false;          // plans that are not enough faster than the best were left out, one by one
};

}  // namespace cfp::detail
