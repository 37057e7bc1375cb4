// What the decisions of a model take in its stages, weights that another stage has counted where they are read.
#pragma once

#include <cfp/plan/mesh_plans.hpp>
#include <cfp/plan/stages/copied_weights.hpp>
#include <cfp/plan/stages/stage_pricing.hpp>
#include <cfp/plan/stages/stage_segments.hpp>

namespace cfp::inline v0_1::detail {

inline stage_costs priced_stages(const planned_graph& planned, const stage_segments& segments, const decision_graph& d,
                                 const mesh_shape& inside, const described_times& times, const target& on,
                                 known_conversions* conversions) {
  stage_costs out = stage_pricing(planned.g, inside, d, times, on, conversions).prices();
  copied_weights(planned.g, segments, inside, on.real_bytes).count(d, out);
  return out;
}

}  // namespace cfp::inline v0_1::detail
