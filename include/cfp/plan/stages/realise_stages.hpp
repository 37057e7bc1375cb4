// From choices and a cut to the programs they become.
#pragma once

#include <cfp/plan/realise.hpp>
#include <cfp/plan/stages/staged_layout.hpp>
#include <cfp/program/stages/lower_stages.hpp>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace cfp::inline v0_1 {

/// Makes the programs of a plan in stages; its decisions are of the mesh inside them. Throws what `lower_stages` does.
inline plan realise(std::string label, const graph& g, const staged_layout& layout, const decision_graph& d,
                    std::vector<int> choices, const target& on = {}) {
  plan out;
  out.name = std::move(label);
  out.choices = std::move(choices);
  out.shards = shard(g, d, out.choices);
  out.in_stages = std::make_shared<const stage_programs>(lower_stages(
      g, layout.inside, out.shards, {layout.first, layout.schedule_of(g.passes), layout.costs}, on, {.overlap = true}));
  out.code = out.in_stages->along.front();
  return out;
}

}  // namespace cfp
