// What a step of a pipeline takes on a described machine, and the memory of its devices, by the programs it becomes.
// Beyond some micro-batches each takes as long as the one before.
#pragma once

#include <cfp/plan/stages/staged_layout.hpp>
#include <cfp/profile/machine/described_times.hpp>
#include <cfp/profile/machine/stage_timeline.hpp>
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

inline staged_price price_of(const graph& g, const sharding& plan, const staged_layout& layout,
                             const timed_machine& with, const target& on) {
  const stage_programs p = lower_stages(
      g, layout.inside, plan, {layout.first, layout.schedule_of(g.passes), layout.costs}, on, {.overlap = true});
  described_times times(with.m, p.along[0].mesh, with.known);
  std::vector<std::vector<double>> ms;
  staged_price out;
  for (const program& one : p.along) {
    ms.emplace_back();
    for (const instruction& i : one.code) ms.back().push_back(times(i, one, p.g));
    out.peaks.push_back(one.arena_bytes + one.persistent_bytes());
    out.peak = std::max(out.peak, out.peaks.back());
  }
  const stage_timeline all = simulate(p.along, ms, with.m.device.contention, 1000 * with.m.device.hand_over);
  out.ms = all.ms, out.idle = all.idle();
  return out;
}

}  // namespace detail

/// Priced by few micro-batches where there are many: two schedules, the longer of which says what each more takes.
inline staged_price price_of(const graph_of_passes& model, const sharding& plan, const staged_layout& layout,
                             const timed_machine& with, const target& on, int micro_batches) {
  const int few = 2 * layout.places, more = 3 * layout.places;
  if (micro_batches <= more) return detail::price_of(model(micro_batches), plan, layout, with, on);
  const staged_price a = detail::price_of(model(few), plan, layout, with, on);
  staged_price out = detail::price_of(model(more), plan, layout, with, on);
  const double busy = (1 - out.idle) * out.ms / more * micro_batches;
  out.ms = a.ms + (out.ms - a.ms) / (more - few) * (micro_batches - few);
  for (std::size_t place = 0; place < out.peaks.size(); ++place) {  // what each micro-batch is given
    const long grown = std::max(0L, out.peaks[place] - a.peaks[place]);
    out.peaks[place] += grown * (micro_batches - more) / (more - few);
    out.peak = std::max(out.peak, out.peaks[place]);
  }
  out.idle = 1 - busy / out.ms;
  return out;
}

}  // namespace cfp
