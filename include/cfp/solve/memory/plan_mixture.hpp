// A first good plan within a limit: the best of those that mix a few plans, which different prices of memory bring
// about. Prices are sought among the few plans, where that takes no time; all choices are looked at only to bound what
// they can be better by, which brings the next plan.
#pragma once

#include <cfp/solve/memory/incumbent.hpp>
#include <cfp/solve/memory/least_memory.hpp>
#include <cfp/solve/memory/memory_price.hpp>
#include <cfp/solve/memory/priced_runs.hpp>

#include <optional>

namespace cfp::inline v0_1::detail {

class plan_mixture {
 public:
  /// Of plans in a range. Those found go to `best`.
  plan_mixture(priced_runs& runs, const plan_range& range, const solve_options& options, incumbent& best,
               work_meter& meter)
      : runs_(runs), range_(range), options_(options), best_(best), meter_(meter) {}

  double price = 0;            ///< at which the bound is about highest
  std::int64_t transient = 0;  ///< the largest of the fastest plan known whose sum of memory is within the limit

  /// Adds plans until those who mix them know about as much of the best price as all do.
  void settle() {
    constexpr int most_rounds = 12;
    for (int round = 0; round < most_rounds && bound() < best_.time() && !meter_.over(); ++round) {
      const problem few = runs_.mixture(range_);
      const std::optional<priced_bound> of_few = priced_among(few);
      if (!of_few) {
        if (!add(price)) return;
        continue;
      }
      price = of_few->price;
      transient = sums(few, of_few->within).transient;
      fill(few, of_few->within);
      const double tolerance = std::max(1e-4, options_.gap / 10) * std::fabs(of_few->bound);
      if (of_few->bound - bound() <= tolerance || runs_.known(price, range_)) return;
      if (!add(price)) return;
    }
  }

  /// Adds the plan of a price, unless it is known.
  bool add(double at) {
    if (runs_.known(at, range_)) return false;
    const std::vector<int> plan = runs_.at(at, range_, options_, meter_);
    if (plan.empty()) return false;
    best_.offer(plan);
    return true;
  }

  [[nodiscard]] double bound() const { return runs_.bound(range_); }

 private:
  // At the best price the plans that share it are equally good: as much of the faster ones as fits, which a price just
  // below it prefers; then whatever else does.
  void fill(const problem& few, plan_indices within) {
    local_search fitting(few);
    for (const double at : {0.99 * price, 0.0}) fitting.improve(within, range_.limit, at);
    best_.offer(few, within);
  }

  // The price at which few plans' bound is highest, if one of them is within the limit.
  std::optional<priced_bound> priced_among(const problem& few) {
    if (few.dead) return std::nullopt;
    const std::int64_t capacity = range_.limit - range_.floor - few.base_memory;
    const auto least = least_sum(memory_form(few), options_, meter_);
    if (!least || least->sum - few.base_memory > capacity) return std::nullopt;
    const auto finder = make_plan_finder(few, options_.max_entries / 4, meter_.left() / 8, options_);
    return find_memory_price(few, *finder, {capacity, infinite_time, price, 0}, least->plan, best_, meter_);
  }

  priced_runs& runs_;
  plan_range range_;
  const solve_options& options_;
  incumbent& best_;
  work_meter& meter_;
};

}  // namespace cfp::detail
