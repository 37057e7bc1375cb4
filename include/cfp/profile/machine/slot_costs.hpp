// What a slot of each stage takes, by programs of few micro-batches: from them a schedule of many is simulated.
#pragma once

#include <cfp/pipeline/simulate_pipeline.hpp>
#include <cfp/profile/machine/stage_timeline.hpp>
#include <cfp/profile/summary.hpp>

#include <cstddef>
#include <map>
#include <utility>
#include <vector>

namespace cfp::inline v0_1 {

struct slot_costs {
  std::vector<stage_cost> of_stage;
  double busy = 0;  ///< milliseconds that operators of all stages work for a micro-batch
};

/// Of programs that `lower_stages` made by schedule `s`, from a timeline of each by itself (`simulate_apart`): of slots
/// of the same kind of a stage the median, since the first ones and the last ones do more. What stages send takes what
/// `sends` says; none: nothing.
inline slot_costs costs_of_slots(const stage_timeline& apart, const pipeline_schedule& s,
                                 const std::vector<stage_cost>& sends) {
  std::map<std::pair<int, slot::kind_t>, std::vector<double>> ms, busy;
  for (std::size_t r = 0; r < s.ranks.size(); ++r) {
    const std::vector<stage_timeline::slot_begin>& begun = apart.slots[r];
    std::size_t k = 0;  // programs have updates in no slot of their own
    for (const slot& x : s.ranks[r]) {
      if (x.kind == slot::update) continue;
      ms[{x.stage, x.kind}].push_back(begun[k + 1].ms - begun[k].ms);
      busy[{x.stage, x.kind}].push_back(begun[k + 1].busy - begun[k].busy);
      ++k;
    }
  }
  slot_costs out;
  for (int stage = 0; stage < s.stages; ++stage) {
    stage_cost c = sends.empty() ? stage_cost{} : sends[static_cast<std::size_t>(stage)];
    c.forward = c.backward_inputs = c.backward_weights = c.update = 0;
    out.of_stage.push_back(c);
  }
  for (const auto& [of, some] : ms) {
    stage_cost& c = out.of_stage[static_cast<std::size_t>(of.first)];
    double& to = of.second == slot::forward            ? c.forward
                 : of.second == slot::backward_weights ? c.backward_weights
                                                       : c.backward_inputs;
    to = median(some);
    out.busy += median(busy[of]);
  }
  return out;
}

}  // namespace cfp
