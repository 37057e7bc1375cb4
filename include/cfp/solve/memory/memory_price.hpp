#pragma once

// The price of memory (Lagrangian relaxation): for any price, the least of (time + price * memory) less the
// price of all memory there is bounds the time of every plan within the limit from below. Here is the price
// for which this bound is highest.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <cfp/solve/exact/plan_finder.hpp>
#include <cfp/solve/memory/budget.hpp>
#include <cfp/solve/memory/incumbent.hpp>
#include <cfp/solve/problem.hpp>

namespace cfp::inline v0_1::detail {

struct priced_bound {
  double price = 0;
  double bound = -infinite_time;  // on the time of plans whose sum of memory is within the capacity
  plan_indices within;            // the fastest plan within the capacity that turned up
  bool settled = false;           // `within` is as fast as any: no price is needed
};

struct price_question {
  std::int64_t capacity;  // bounds the sum of memory, base excluded
  double enough;          // a bound that is high enough to stop
  double guess;           // a price to begin with; 0 for none
  double slack;           // how far from the best price's bound to stop, as a part of what it is short of `enough`
};

/// Asks for prices, and keeps the best bound and the fastest plan within the capacity.
struct price_search {
  const problem& p;
  plan_finder& e;
  double room;  // the capacity
  incumbent& best;
  work_meter& meter;
  priced_bound result{};
  double last_price = -1;
  double fastest = infinite_time;

  struct point {
    double time;
    double memory;
  };
  point point_of(plan_indices plan) {
    const plan_sums cost = sums(p, plan);
    const point where{cost.time, static_cast<double>(cost.memory - p.base_memory)};
    if (where.memory <= room) best.offer(p, plan);
    if (where.memory <= room && where.time <= fastest) {
      fastest = where.time;
      result.within = std::move(plan);
    }
    return where;
  }
  point ask(double price) {
    meter.spend(e.work());
    const double bound = e.run(price) - price * room;
    last_price = price;
    if (bound > result.bound) {
      result.bound = bound;
      result.price = price;
    }
    return point_of(e.plan());
  }
};

/// `least` is a plan within the capacity. Each price follows from the last two plans on either side of the
/// capacity (where both would be equally good), until no better plan turns up; without split tables this ends
/// at the best price. All plans within the capacity are offered to `best`. Leaves `e` run at the price
/// returned.
inline priced_bound find_memory_price(const problem& p, plan_finder& e, const price_question& question,
                                      plan_indices least, incumbent& best, work_meter& meter) {
  const auto room = static_cast<double>(question.capacity);
  price_search search{p, e, room, best, meter};
  priced_bound& result = search.result;
  using point = price_search::point;
  point inside = search.point_of(std::move(least));
  point outside{0, -1};
  if (question.guess > 0) {
    const point first = search.ask(question.guess);
    (first.memory <= room ? inside : outside) = first;
  }
  if (outside.memory < 0) outside = search.ask(0);
  if (outside.memory <= room) {  // no price is needed: the fastest plan is within
    result.settled = e.exact();
    return result;
  }
  constexpr int max_prices = 60;
  for (int i = 0; i < max_prices && result.bound < question.enough && !meter.over(); ++i) {
    const double price = (inside.time - outside.time) / (outside.memory - inside.memory);
    if (!(price > 0) || !(price < infinite_time)) break;
    const point next = search.ask(price);
    const double on_line = inside.time + price * inside.memory;
    // No price can raise the bound above the line through both plans, at the capacity.
    if (on_line - price * room - result.bound < question.slack * (question.enough - result.bound)) break;
    if (!(next.time + price * next.memory < on_line - 1e-12 * std::fabs(on_line))) break;
    (next.memory <= room ? inside : outside) = next;
  }
  if (search.last_price != result.price) {
    meter.spend(e.work());
    e.run(result.price);
  }
  return result;
}

}  // namespace cfp::detail
