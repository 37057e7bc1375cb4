// The best of Alpa's strategies as one thing after the other that it leaves out is counted.
#pragma once

#include <cfp/plan/machine_search.hpp>

#include <utility>
#include <vector>

namespace cfp::inline v0_1 {

/// On one mesh; `search` is that of these. The last step, to all strategies and the memory limit, is that to its
/// `candidates`.
inline std::vector<evaluated> ladder(machine_search& search, const graph& g, const mesh_shape& mesh,
                                     const decision_graph& d, const machine& m, const machine_options& options) {
  std::vector<evaluated> out;
  described_conversions conversions(m, mesh);
  const machine_options how = options.on(m.device.memory, conversions.prices);
  const auto rung = [&](const char* counted, const priced_effects& effects) {
    described_times times(m, mesh);
    times.effects = effects;
    roofline pricing(g, mesh, d, times, how.lowered_for, &conversions.known);
    if (auto e = search.alpa_by(counted, only_alpa(pricing.build(), g, d))) out.push_back(std::move(*e));
  };
  rung("bandwidth", {false, false, false});
  rung("latency", {false, true, false});
  rung("small messages", {false, true, true});
  rung("operators", {true, true, true});
  return out;
}

}  // namespace cfp
