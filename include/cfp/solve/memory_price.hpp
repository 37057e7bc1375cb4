#pragma once

// The price of memory (Lagrangian relaxation): for any price, the least of (time + price * memory) less the price of
// all memory there is bounds the time of every plan within the limit from below. Here is the price for which this
// bound is highest.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "budget.hpp"
#include "elimination.hpp"
#include "problem.hpp"

namespace cfp::detail {

struct priced_bound {
  double price = 0;
  double bound = -infinite_time;  // on the time of plans whose sum of memory is within the capacity
  plan_indices within;            // the fastest plan within the capacity that turned up
  bool settled = false;           // `within` is as fast as any: no price is needed
};

/// `capacity` bounds the sum of memory, base excluded; `least` is a plan that keeps it. Each price follows from the
/// last two plans on either side of the capacity (where both would be equally good), until no better plan turns
/// up; without split tables this ends at the best price. Leaves `e` run at the price returned.
inline priced_bound find_memory_price(const problem& p, elimination& e, std::int64_t capacity, plan_indices least,
                                      work_meter& meter) {
  struct point {
    double time;
    double memory;
  };
  const auto point_of = [&p](const plan_indices& plan) {
    const plan_sums cost = sums(p, plan);
    return point{cost.time, static_cast<double>(cost.memory - p.base_memory)};
  };
  const auto room = static_cast<double>(capacity);

  priced_bound result;
  result.within = std::move(least);
  point inside = point_of(result.within);
  double fastest = inside.time;
  meter.spend(e.work());
  result.bound = e.run(0);
  plan_indices plan = e.plan();
  point outside = point_of(plan);
  if (outside.memory <= room) {
    if (outside.time <= fastest) result.within = std::move(plan);
    result.settled = e.exact();
    return result;
  }

  constexpr int max_prices = 60;
  double last_price = 0;
  for (int i = 0; i < max_prices && !meter.over(); ++i) {
    const double price = (inside.time - outside.time) / (outside.memory - inside.memory);
    if (!(price > 0) || !(price < infinite_time)) break;
    meter.spend(e.work());
    const double least_total = e.run(price);
    last_price = price;
    if (least_total - price * room > result.bound) {
      result.bound = least_total - price * room;
      result.price = price;
    }
    plan = e.plan();
    const point next = point_of(plan);
    const double on_line = inside.time + price * inside.memory;
    const bool converged = !(next.time + price * next.memory < on_line - 1e-12 * std::fabs(on_line));
    if (next.memory <= room) {
      if (next.time < fastest) {
        fastest = next.time;
        result.within = std::move(plan);
      }
      inside = next;
    } else {
      outside = next;
    }
    if (converged) break;
  }
  if (last_price != result.price) {
    meter.spend(e.work());
    e.run(result.price);
  }
  return result;
}

}  // namespace cfp::detail
