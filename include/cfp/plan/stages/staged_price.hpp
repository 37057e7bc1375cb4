// What a step of a pipeline takes on a described machine, and the memory of its devices, by the programs it becomes.
#pragma once

#include <cfp/plan/stages/staged_layout.hpp>
#include <cfp/profile/machine/pipeline_times.hpp>
#include <cfp/profile/machine/slot_costs.hpp>
#include <cfp/program/stages/lower_stages.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace cfp::inline v0_1 {

struct staged_price {
  double ms = 0;              ///< of a step
  double idle = 0;            ///< of the time of all ranks, the part in which their operators do nothing
  long peak = 0;              ///< bytes of the device that takes most, as planned
  std::vector<long> peaks{};  ///< of those of each place
};

/// What it is priced on: a machine, or pools that the layout's places are in, and instructions measured on its devices.
struct timed_machine {
  machine_pools m;
  known_instructions* known = nullptr;
};

/// By how many bytes the place that lacks most is above what its devices have, or `limit`, if it is not 0; below 0:
/// none is.
inline long bytes_over(const staged_price& p, const placed_pools& on, long limit) {
  long out = std::numeric_limits<long>::min();
  for (int place = 0; place < on.places(); ++place)
    out = std::max(
        out, p.peaks[static_cast<std::size_t>(place)] - (limit > 0 ? limit : on.own(on.pool(place)).device.memory));
  return out;
}

/// The training graph of a model in so many micro-batches.
using graph_of_passes = std::function<graph(int micro_batches)>;

namespace detail {

struct priced_programs {
  staged_price price;
  slot_costs costs;
};

inline priced_programs price_programs(const graph& g, const sharding& plan, const staged_layout& layout,
                                      const timed_machine& with, const target& on) {
  const pipeline_schedule s = layout.schedule_of(g.passes);
  const stage_programs p = lower_stages(g, layout.inside, plan, {layout.first, s, layout.costs}, on, {.overlap = true});
  const placed_pools on_pools(with.m, layout.inside, layout.places, layout.pools);
  pipeline_times times(on_pools, with.known);
  std::vector<std::vector<double>> ms;
  priced_programs out;
  for (const program& one : p.along) {
    ms.push_back(times(one, p.g));
    out.price.peaks.push_back(one.arena_bytes + one.persistent_bytes());
    out.price.peak = std::max(out.price.peak, out.price.peaks.back());
  }
  const std::vector<stream_pace> paces = times.paces();
  const stage_timeline all = simulate(p.along, ms, paces);
  out.price.ms = all.ms, out.price.idle = all.idle();
  out.costs = costs_of_slots(simulate_apart(p.along, ms, paces), s, layout.costs);
  return out;
}

// Of so many micro-batches those from which on each more of them does what the one before does; 0: not known.
inline int enough_micro_batches(const staged_layout& layout, int micro_batches, bool roughly) {
  if (layout.schedule != "1f1b" && layout.schedule != "zb_h1" && layout.schedule != "interleaved") return 0;
  if (!roughly || micro_batches <= 3 * layout.places) return 3 * layout.places;
  return layout.schedule == "interleaved" ? 2 * layout.places : layout.places + 2;
}

}  // namespace detail

/// By which a price that is said roughly is off, but where uneven stages are interleaved (`runtime.staged_search`).
inline constexpr double roughly_off = 0.01;

/// Priced by programs of few micro-batches where there are many. What more of them take says a simulation of both
/// schedules, whose slots take what those of the programs do; where stages are interleaved programs of fewer say it,
/// since they wait for one another's transfers too. Memory grows on as it did from fewer. `roughly`: by as few as say
/// something, where micro-batches are many, and by slots alone.
inline staged_price price_of(const graph_of_passes& model, const sharding& plan, const staged_layout& layout,
                             const timed_machine& with, const target& on, int micro_batches, bool roughly = false) {
  const int enough = detail::enough_micro_batches(layout, micro_batches, roughly), more = micro_batches - enough;
  const auto by_programs = [&](int n) { return detail::price_programs(model(n), plan, layout, with, on); };
  if (enough == 0 || more <= 0) return by_programs(micro_batches).price;
  const detail::priced_programs few = by_programs(enough);
  const auto simulated = [&](int n) { return simulate(layout.schedule_of(n), few.costs.of_stage).ms; };
  staged_price out = few.price;
  double more_ms = simulated(micro_batches) - simulated(enough);
  if (!roughly) {
    const int fewer = enough - layout.places;
    const staged_price before = by_programs(fewer).price;
    const double times = static_cast<double>(more) / (enough - fewer);
    if (layout.schedule == "interleaved") more_ms = (out.ms - before.ms) * times;
    for (std::size_t place = 0; place < out.peaks.size(); ++place) {
      const long grown = std::max(0L, out.peaks[place] - before.peaks[place]);
      out.peaks[place] += std::lround(static_cast<double>(grown) * times);
      out.peak = std::max(out.peak, out.peaks[place]);
    }
  }
  const double busy = (1 - out.idle) * out.ms + more * few.costs.busy / layout.places;
  out.ms += more_ms;
  out.idle = 1 - busy / out.ms;
  return out;
}

}  // namespace cfp
