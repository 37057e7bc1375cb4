// Plans for fleets: see fleet_plan.hpp.
#pragma once

#include <cfp/core/bad_input.hpp>
#include <cfp/model/checked.hpp>
#include <cfp/model/differentiate.hpp>
#include <cfp/model/refine.hpp>
#include <cfp/plan/least_step.hpp>
#include <cfp/plan/mesh_search.hpp>
#include <cfp/session/fleet_plan.hpp>
#include <cfp/session/plan_for_implementation.hpp>
#include <cfp/session/texts.hpp>

#include <algorithm>
#include <limits>
#include <mutex>
#include <utility>
#include <vector>

namespace cfp::inline v0_1 {

namespace detail {

/// The parts of all machines, and, joined, of every two of them; and what no plan there takes less than.
inline std::vector<fleet_offer> offers_of(const fleet& f, const graphs_of_passes& model, const machine_plan_options& o,
                                          bool joined) {
  const target on = search_options(o).lowered_for;
  const int passes = model.counts.front();
  std::vector<graph> trained;  // by each of the optimizers
  std::vector<program> alone;
  for (const optimizer_form form : o.optimizers.empty() ? std::vector{o.how.optimizer} : o.optimizers) {
    training how = in_micro_batches(o.how, passes);
    how.optimizer = form;
    trained.push_back(differentiate(refine(checked(model.forward(passes))), checked(how)));
    alone.push_back(on_one_device(trained.back(), on));
  }
  std::vector<fleet_offer> out;
  std::vector<double> on_one;  // milliseconds, of each pool
  for (std::size_t i = 0; i < f.pools.size(); ++i) {
    const fleet::pool& p = f.pools[i];
    product_rate(p.on.device, bytes_of(o.type));  // or it says what the machine's file lacks
    on_one.push_back(std::numeric_limits<double>::infinity());
    for (std::size_t n = 0; n < alone.size(); ++n)
      on_one[i] = std::min(on_one[i], least_step_ms(alone[n], trained[n], p.on.device, 1));
    for (const int devices : counts_of(p.on))
      out.push_back({p.name, devices, {{i, devices}}, p.price * devices, on_one[i] / devices});
  }
  const std::size_t single = out.size();
  for (std::size_t a = 0; joined && a < single; ++a)
    for (std::size_t b = a + 1; b < single; ++b) {
      const fleet_offer &x = out[a], &y = out[b];
      if (x.parts[0].first == y.parts[0].first) continue;
      out.push_back(
          {std::to_string(x.devices) + " of " + x.machine + " + " + std::to_string(y.devices) + " of " + y.machine,
           x.devices + y.devices,
           {x.parts[0], y.parts[0]},
           x.hourly + y.hourly,
           1 / (1 / x.least_ms + 1 / y.least_ms)});
    }
  return out;
}

/// The order in which they are planned: what bounds promise to be cheap first, for it beats the most others; or what
/// has few devices.
inline std::vector<fleet_offer*> in_order(std::vector<fleet_offer>& offers, const fleet_question& q) {
  std::vector<fleet_offer*> out;
  for (fleet_offer& x : offers) out.push_back(&x);
  std::stable_sort(out.begin(), out.end(), [&](const fleet_offer* a, const fleet_offer* b) {
    if (q.wanted == fleet_question::least_devices) return a->devices < b->devices;
    const auto price = [](const fleet_offer* x) { return static_cast<float>(x->least_price()); };  // equal, if almost
    return std::pair(price(a), a->least_ms) < std::pair(price(b), b->least_ms);
  });
  return out;
}

/// Milliseconds of a step beyond which one that was planned beats it in time and money.
inline double within_of(const fleet_offer& x, const std::vector<fleet_offer>& by) {
  double out = std::numeric_limits<double>::infinity();
  for (const fleet_offer& y : by)
    if (y.state == fleet_offer::planned) out = std::min(out, std::max(y.ms, 3.6e6 * y.price() / x.hourly));
  return out;
}

// Whether there must be a plan for an offer, by what is known of others; else its state says why not.
inline bool is_asked(fleet_offer& x, const std::vector<fleet_offer>& all, const fleet_question& q) {
  if (x.hourly > q.budget) return x.state = fleet_offer::above_budget, false;
  if (!q.prune) return true;
  if (q.wanted == fleet_question::front) {
    x.within = within_of(x, all);
    if (x.within <= x.least_ms) x.state = fleet_offer::beaten;
    return x.state != fleet_offer::beaten;
  }
  return std::none_of(all.begin(), all.end(),
                      [&](const fleet_offer& y) { return y.state == fleet_offer::planned && y.devices < x.devices; });
}

// How many offers are planned for at the same time. Of few devices first, one may make all others needless.
inline std::size_t planned_together(const fleet_question& q) { return q.wanted == fleet_question::front ? 4 : 1; }

// Plans for an offer: with stages and without, where that is asked for and can be.
inline void plan_offer(fleet_offer& x, const forward_of_rows& model, long rows, const fleet& f,
                       const machine_plan_options& o, const fleet_question& q) {
  machine_plan_options there = o;
  there.within = x.within;
  if (o.tell)
    there.tell = [&](const progress& now) {
      const std::string on = x.parts.size() > 1 ? x.machine : std::to_string(x.devices) + " of " + x.machine;
      return o.tell({on + ": " + now.what, now.share});
    };
  std::vector<machine> parts;
  for (const auto& [pool, devices] : x.parts) parts.push_back(innermost(f.pools[pool].on, devices));
  if (parts.size() == 1) {
    x.plan = plan_for(model, rows, part_of(f.pools[x.parts[0].first].on, x.devices, x.machine), there);
    if (x.plan.fits()) x.ms = x.plan.meshes.front().fastest()->ms;
  }
  if (q.stages && x.devices > 1) {
    const machine_pools all = parts.size() == 1 ? machine_pools(parts[0]) : machine_pools(parts, *f.between);
    std::optional<stages_plan> p = plan_in_stages(model, rows, all, there);
    if (p && p->plan.price.ms < x.ms) x.ms = p->plan.price.ms, x.in_stages = std::move(p);
    there.within = std::min(x.within, x.ms);
    if (parts.size() > 1) x.in_copies = plan_in_copies(model, rows, all, there);
    if (x.in_copies) x.ms = x.in_copies->ms, x.in_stages.reset();
  }
  constexpr double none = std::numeric_limits<double>::infinity();
  x.state = x.ms < none ? fleet_offer::planned : x.within < none ? fleet_offer::beaten : fleet_offer::unfit;
  if (x.state == fleet_offer::beaten) x.least_ms = x.within;
}

}  // namespace detail

CFP_INLINE fleet_plan plan_for(const forward_of_rows& model, long rows, const fleet& f, const machine_plan_options& o,
                               const fleet_question& q) {
  if (!(q.budget > 0)) throw bad_input("the budget must be more than 0, is " + detail::printed("%g", q.budget));
  if (!o.mesh.empty()) throw bad_input("mesh " + o.mesh + ": parts of a fleet have many; leave it out");
  if (!o.table.empty() || o.measure_on.ms)
    throw bad_input("a table of operators is of one kind of device, a fleet has several; leave it out");
  const detail::graphs_of_passes in_passes = detail::by_passes(model, rows, o.micro_batches);
  fleet_plan out{f.name, f.currency, detail::offers_of(f, in_passes, o, q.stages && f.between)};
  const std::vector<fleet_offer*> order = detail::in_order(out.offers, q);
  machine_plan_options quiet = o;  // heard of by one at a time
  std::mutex telling;
  if (o.tell)
    quiet.tell = [&](const progress& now) {
      const std::lock_guard lock(telling);
      return o.tell(now);
    };
  for (std::size_t next = 0; next < order.size();) {
    std::vector<std::size_t> wave;  // so many whatever the threads: the answer is the same everywhere
    for (; next < order.size() && wave.size() < detail::planned_together(q); ++next)
      if (detail::is_asked(*order[next], out.offers, q)) wave.push_back(next);
    detail::on_threads({}, wave, [&](std::size_t i) { detail::plan_offer(*order[i], model, rows, f, quiet, q); });
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
