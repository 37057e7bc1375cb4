// What the decisions of a model take in its stages, weights that another stage has counted where they are read.
#pragma once

#include <cfp/plan/mesh_plans.hpp>
#include <cfp/plan/stages/copied_weights.hpp>
#include <cfp/plan/stages/stage_pricing.hpp>
#include <cfp/plan/stages/stage_segments.hpp>
#include <cfp/plan/stages/staged_layout.hpp>
#include <cfp/profile/machine/send_time.hpp>

namespace cfp::inline v0_1::detail {

/// `m`: the whole machine, whose stages lie along so many places.
inline stage_costs priced_stages(const planned_graph& planned, const stage_segments& segments, const decision_graph& d,
                                 const machine& m, const staged_layout& layout, const described_times& times,
                                 const target& on, known_conversions* conversions) {
  stage_costs out = stage_pricing(planned.g, layout.inside, d, times, on, conversions).prices();
  const mesh_shape whole = layout.whole();
  copied_weights(planned.g, segments, layout.inside, on.real_bytes)
      .count(
          d, [&](double bytes) { return 1000 * send_seconds(m, whole, 0, layout.places - 1, bytes); }, out);
  return out;
}

}  // namespace cfp::inline v0_1::detail
