// The fastest plan of a model in stages on a described machine: where it is cut, the mesh and the sharding inside, what
// is kept, how many micro-batches and which schedule, in one search.
#pragma once

#include <cfp/plan/mesh_search.hpp>
#include <cfp/plan/stages/one_layout.hpp>

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>

namespace cfp::inline v0_1 {

/// The fastest plan of `batch` rows a step in two stages or more; nothing if none fits. Throws bad_input for a batch of
/// no rows.
inline std::optional<staged_plan> search_stages(const graph_of_rows& model, long batch, const machine& m,
                                                const staged_options& options) {
  if (batch < 1) throw bad_input("a step has at least 1 row, not " + std::to_string(batch));
  std::optional<staged_plan> best;
  const int devices = m.devices();
  for (int micro_batches = options.most_micro_batches; micro_batches >= 2; --micro_batches) {
    if (batch % micro_batches != 0) continue;
    const long rows = batch / micro_batches;
    const graph g = model(rows, micro_batches);
    const detail::planned_graph planned(g, options.machine.lowered_for);
    for (int places = 2; places <= devices; ++places) {
      const auto asked = std::find(options.places.begin(), options.places.end(), places);
      if (devices % places != 0 || places > micro_batches || (!options.places.empty() && asked == options.places.end()))
        continue;
      const machine inner = innermost(m, devices / places);
      if (inner.devices() != devices / places) continue;
      for (const mesh_shape& inside : meshes_of(inner, options.axes)) {
        if (options.machine.over()) return best;
        if (options.tell)
          options.tell(std::to_string(places) + " places of " + sizes_text(inside) + ", " +
                       std::to_string(micro_batches) + " micro-batches");
        detail::one_layout one(model, rows, micro_batches, planned, m, inside, places, options);
        if (auto found = one.run(best ? best->price.ms : std::numeric_limits<double>::infinity()))
          best = std::move(found);
      }
    }
  }
  return best;
}

}  // namespace cfp
