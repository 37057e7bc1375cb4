// What the decisions of a model take in its stages, weights that another stage has counted where they are read.
#pragma once

#include <cfp/plan/mesh_plans.hpp>
#include <cfp/plan/stages/copied_weights.hpp>
#include <cfp/plan/stages/stage_pricing.hpp>
#include <cfp/plan/stages/stage_segments.hpp>
#include <cfp/profile/machine/machine_pools.hpp>

namespace cfp::inline v0_1::detail {

/// Of stages in one of the pools that places are in; weights that are copied are sent from the first place to the last.
inline stage_costs priced_stages(const planned_graph& planned, const stage_segments& segments, const decision_graph& d,
                                 const placed_pools& places, const described_times& times, const target& on,
                                 known_conversions* conversions) {
  stage_costs out = stage_pricing(planned.g, places.inside(), d, times, on, conversions).prices();
  copied_weights(planned.g, segments, places.inside(), on.real_bytes)
      .count(
          d, [&](double bytes) { return 1000 * places.send_seconds(0, places.places() - 1, bytes); }, out);
  return out;
}

}  // namespace cfp::inline v0_1::detail
