// Plans for fleets: see fleet_plan.hpp.
#pragma once

#include <cfp/core/bad_input.hpp>
#include <cfp/model/checked.hpp>
#include <cfp/model/differentiate.hpp>
#include <cfp/model/refine.hpp>
#include <cfp/profile/machine/least_step.hpp>
#include <cfp/session/fleet_plan.hpp>
#include <cfp/session/texts.hpp>

#include <algorithm>
#include <utility>
#include <vector>

namespace cfp::inline v0_1 {

namespace detail {

/// The parts of all machines, and what no plan there takes less than.
inline std::vector<fleet_offer> offers_of(const fleet& f, const graph& g, const machine_plan_options& o) {
  std::vector<fleet_offer> out;
  for (const fleet::pool& p : f.pools)
    for (const int devices : counts_of(p.on)) {
      fleet_offer x{p.name, devices, p.price * devices};
      x.least_ms = least_step_ms(g, p.on.device, bytes_of(o.type), devices);
      out.push_back(std::move(x));
    }
  return out;
}

inline machine part_of(const machine& m, int devices) {
  machine out = innermost(m, devices);
  if (devices < m.devices()) out.name = std::to_string(devices) + " devices of " + m.name;
  return out;
}

/// The order in which they are planned: what bounds promise to be cheap first, for it beats the most others; or what
/// has few devices.
inline std::vector<fleet_offer*> in_order(std::vector<fleet_offer>& offers, const fleet_question& q) {
  std::vector<fleet_offer*> out;
  for (fleet_offer& x : offers) out.push_back(&x);
  std::stable_sort(out.begin(), out.end(), [&](const fleet_offer* a, const fleet_offer* b) {
    if (q.wanted == fleet_question::least_devices) return a->devices < b->devices;
    return std::pair(a->least_price(), a->least_ms) < std::pair(b->least_price(), b->least_ms);
  });
  return out;
}

inline bool is_beaten(const fleet_offer& x, const std::vector<fleet_offer>& by) {
  return std::any_of(by.begin(), by.end(), [&](const fleet_offer& y) {
    return y.state == fleet_offer::planned && y.ms <= x.least_ms && y.price() <= x.least_price();
  });
}

}  // namespace detail

CFP_INLINE fleet_plan plan_for(const graph& forward, const fleet& f, const machine_plan_options& o,
                               const fleet_question& q) {
  if (!(q.budget > 0)) throw bad_input("the budget must be more than 0, is " + detail::printed("%g", q.budget));
  if (!o.mesh.empty()) throw bad_input("mesh " + o.mesh + ": parts of a fleet have many; leave it out");
  if (!o.table.empty() || o.measure_on.ms)
    throw bad_input("a table of operators is of one kind of device, a fleet has several; leave it out");
  const graph g = differentiate(refine(checked(forward)), checked(in_micro_batches(o.how, o.micro_batches)));
  fleet_plan out{f.name, f.currency, detail::offers_of(f, g, o)};
  int fits_on = std::numeric_limits<int>::max();  // so many devices
  for (fleet_offer* const x : detail::in_order(out.offers, q)) {
    if (x->hourly > q.budget) {
      x->state = fleet_offer::above_budget;
      continue;
    }
    if (q.prune && q.wanted == fleet_question::least_devices && x->devices > fits_on) continue;
    if (q.prune && q.wanted == fleet_question::front && detail::is_beaten(*x, out.offers)) {
      x->state = fleet_offer::beaten;
      continue;
    }
    const auto p =
        std::find_if(f.pools.begin(), f.pools.end(), [&](const fleet::pool& of) { return of.name == x->machine; });
    machine_plan_options there = o;
    if (o.tell)
      there.tell = [&](const progress& now) {
        return o.tell({std::to_string(x->devices) + " of " + x->machine + ": " + now.what, now.share});
      };
    x->plan = plan_for(forward, detail::part_of(p->on, x->devices), there);
    x->state = x->plan.fits() ? fleet_offer::planned : fleet_offer::unfit;
    if (!x->plan.fits()) continue;
    x->ms = x->plan.meshes.front().fastest()->ms;
    fits_on = std::min(fits_on, x->devices);
  }
  return out;
}

CFP_INLINE std::vector<const fleet_offer*> fleet_plan::front() const {
  std::vector<const fleet_offer*> all;
  for (const fleet_offer& x : offers)
    if (x.state == fleet_offer::planned) all.push_back(&x);
  std::stable_sort(all.begin(), all.end(), [](const fleet_offer* a, const fleet_offer* b) {
    return std::pair(a->ms, a->price()) < std::pair(b->ms, b->price());
  });
  std::vector<const fleet_offer*> out;
  for (const fleet_offer* x : all)
    if (out.empty() || x->price() < out.back()->price()) out.push_back(x);
  return out;
}

CFP_INLINE const fleet_offer* fleet_plan::fastest() const {
  const std::vector<const fleet_offer*> all = front();
  return all.empty() ? nullptr : all.front();
}

CFP_INLINE const fleet_offer* fleet_plan::cheapest() const {
  const std::vector<const fleet_offer*> all = front();
  return all.empty() ? nullptr : all.back();
}

CFP_INLINE const fleet_offer* fleet_plan::smallest() const {
  const fleet_offer* best = nullptr;
  for (const fleet_offer& x : offers)
    if (x.state == fleet_offer::planned &&
        (best == nullptr || std::pair(x.devices, x.ms) < std::pair(best->devices, best->ms)))
      best = &x;
  return best;
}

CFP_INLINE int fleet_plan::count(fleet_offer::state_t s) const {
  return static_cast<int>(
      std::count_if(offers.begin(), offers.end(), [&](const fleet_offer& x) { return x.state == s; }));
}

}  // namespace cfp
