// What memory is worth on one mesh of a described machine.
#pragma once

#include <cfp/plan/mesh_plans.hpp>
#include <cfp/solve/explain/memory_curve.hpp>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace cfp::inline v0_1 {

struct mesh_points {
  mesh_shape mesh;
  std::vector<evaluated> plans;
};

/// The best plan by sums of parts within one limit of memory after another, whatever limit the options name, from the
/// fastest plan to the leanest; about `most`, each priced by its program. Parts may compute again what they would keep,
/// and leave state on the host, unless the options forbid it. Of time that is limited each takes what is left.
inline mesh_points mesh_curve(const graph& g, const machine& m, const mesh_shape& mesh, const machine_options& options,
                              std::int64_t most) {
  const detail::planned_graph planned(g, options.lowered_for);
  const bool recomputes = options.recompute != recomputing::none;
  const decision_graph d =
      detail::decided(planned, mesh, options, {}, recomputes, detail::rests_of(m, options).front());
  machine_search search(g, mesh, d, m, options, &planned.again);
  const folding folded(d, &planned.again);
  mesh_points out{mesh, {}};
  for (const solution& point : memory_curve(folded.of(search.costs()), most, options.of_solver())) {
    evaluated e = search.estimate("found", folded.all(point).choices);
    e.gap = point.gap();
    out.plans.push_back(std::move(e));
  }
  return out;
}

}  // namespace cfp
