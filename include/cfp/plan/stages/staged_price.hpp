// What a step of a pipeline takes on a described machine, and the memory of its devices, by the programs it becomes.
#pragma once

#include <cfp/plan/stages/staged_layout.hpp>
#include <cfp/profile/machine/described_times.hpp>
#include <cfp/profile/machine/slot_costs.hpp>
#include <cfp/program/stages/lower_stages.hpp>

#include <algorithm>
#include <functional>
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

/// What it is priced on: a machine, and instructions measured on its devices, if any.
struct timed_machine {
  const machine& m;
  known_instructions* known = nullptr;
};

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
  described_times times(with.m, p.along[0].mesh, with.known);
  std::vector<std::vector<double>> ms;
  priced_programs out;
  for (const program& one : p.along) {
    ms.emplace_back();
    for (const instruction& i : one.code) ms.back().push_back(times(i, one, p.g));
    out.price.peaks.push_back(one.arena_bytes + one.persistent_bytes());
    out.price.peak = std::max(out.price.peak, out.price.peaks.back());
  }
  const double contention = with.m.device.contention, hand_over = 1000 * with.m.device.hand_over;
  const stage_timeline all = simulate(p.along, ms, contention, hand_over);
  out.price.ms = all.ms, out.price.idle = all.idle();
  out.costs = costs_of_slots(simulate_apart(p.along, ms, contention, hand_over), s, layout.costs);
  return out;
}

// From how many micro-batches on each more of them does what the one before does, and takes no memory; 0: not known.
inline int enough_micro_batches(const staged_layout& layout) {
  if (layout.schedule == "1f1b" || layout.schedule == "zb_h1") return layout.places + 2;
  return layout.schedule == "interleaved" ? 2 * layout.places : 0;
}

}  // namespace detail

/// Priced by programs of few micro-batches where there are many, of at least `least`; what more of them take says a
/// simulation of both schedules, whose slots take what those of the programs do.
inline staged_price price_of(const graph_of_passes& model, const sharding& plan, const staged_layout& layout,
                             const timed_machine& with, const target& on, int micro_batches, int least = 0) {
  int enough = detail::enough_micro_batches(layout);
  if (enough > 0) enough = std::max(enough, least);
  if (enough == 0 || micro_batches <= enough)
    return detail::price_programs(model(micro_batches), plan, layout, with, on).price;
  const detail::priced_programs few = detail::price_programs(model(enough), plan, layout, with, on);
  const auto simulated = [&](int n) { return simulate(layout.schedule_of(n), few.costs.of_stage).ms; };
  staged_price out = few.price;
  out.ms += simulated(micro_batches) - simulated(enough);
  const double busy = (1 - few.price.idle) * few.price.ms + (micro_batches - enough) * few.costs.busy / layout.places;
  out.idle = 1 - busy / out.ms;
  return out;
}

}  // namespace cfp
