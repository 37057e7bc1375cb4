// What the borders between stages take, wherever a model is cut.
#pragma once

#include <cfp/plan/stages/stage_segments.hpp>
#include <cfp/profile/machine/send_time.hpp>
#include <cfp/program/readers.hpp>
#include <cfp/program/stages/stage_mesh.hpp>
#include <cfp/solve/stages.hpp>

#include <algorithm>
#include <cstddef>
#include <vector>

namespace cfp::inline v0_1::detail {

/// What crosses before a segment takes, each micro-batch, split over all ranks of a stage.
inline std::vector<border_cost> borders_of(const graph& g, const stage_segments& r, const machine& m,
                                           const mesh_shape& inside, int places, long real_bytes) {
  std::vector<border_cost> out(r.first.size());
  const std::vector<std::vector<int>> read_by = consumers(g);
  const mesh_shape mesh = with_stages(inside, places);
  for (std::size_t s = 1; s < out.size(); ++s) {
    const int first = r.first[s];
    double bytes = 0;
    for (int o = 0; o < first; ++o)
      if (g.at(o).when == phase::forward)
        for (const int v : g.at(o).results) {
          const auto crosses = [&](int reader) { return reader >= first && g.at(reader).when == phase::forward; };
          const std::vector<int>& readers = read_by[static_cast<std::size_t>(v)];
          if (std::any_of(readers.begin(), readers.end(), crosses))
            bytes += static_cast<double>(elements(g[v].shape) * g[v].width(real_bytes)) / inside.devices();
        }
    out[s].forward = out[s].backward = 1000 * send_seconds(m, mesh, 0, 1, bytes);
  }
  return out;
}

/// Of stages that end there, with what they choose and what crosses.
inline std::vector<stage_cost> costs_of(const std::vector<stage_option>& chosen, const std::vector<int>& ends,
                                        const std::vector<border_cost>& borders) {
  std::vector<stage_cost> out(chosen.size());
  for (std::size_t s = 0; s < out.size(); ++s) {
    out[s].forward = chosen[s].forward;
    out[s].backward_inputs = out[s].backward_weights = chosen[s].backward / 2;
    out[s].update = chosen[s].update;
    if (s + 1 < out.size()) out[s].send_forward = borders[static_cast<std::size_t>(ends[s])].forward;
    if (s > 0) out[s].send_backward = borders[static_cast<std::size_t>(ends[s - 1])].backward;
  }
  return out;
}

}  // namespace cfp::detail
