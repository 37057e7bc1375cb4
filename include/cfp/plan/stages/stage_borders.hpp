// What the borders between stages take, wherever a model is cut.
#pragma once

#include <cfp/plan/stages/stage_segments.hpp>
#include <cfp/profile/machine/machine_pools.hpp>
#include <cfp/program/readers.hpp>
#include <cfp/solve/stages.hpp>

#include <algorithm>
#include <cstddef>
#include <vector>

namespace cfp::inline v0_1::detail {

class stage_borders {
 public:
  /// `on` must outlive it.
  stage_borders(const graph& g, const stage_segments& r, const placed_pools& on, long real_bytes)
      : on_(on), bytes_(r.first.size()) {
    const std::vector<std::vector<int>> read_by = consumers(g);
    for (std::size_t s = 1; s < bytes_.size(); ++s) {
      const int first = r.first[s];
      for (int o = 0; o < first; ++o)
        if (g.at(o).when == phase::forward)
          for (const int v : g.at(o).results) {
            const auto crosses = [&](int reader) { return reader >= first && g.at(reader).when == phase::forward; };
            const std::vector<int>& readers = read_by[static_cast<std::size_t>(v)];
            if (std::any_of(readers.begin(), readers.end(), crosses))
              bytes_[s] += static_cast<double>(elements(g[v].shape) * g[v].width(real_bytes)) / on.inside().devices();
          }
    }
  }

  /// Of each micro-batch, split over all ranks of a stage, where stage `stage` begins with a segment.
  border_cost operator()(int stage, int segment) const {
    const double ms = 1000 * on_.next_seconds(stage, bytes_[static_cast<std::size_t>(segment)]);
    return {ms, ms};
  }

  /// Of stages that end there, with what they choose and what crosses.
  std::vector<stage_cost> costs_of(const std::vector<stage_option>& chosen, const std::vector<int>& ends) const {
    std::vector<stage_cost> out(chosen.size());
    for (std::size_t s = 0; s < out.size(); ++s) {
      const int stage = static_cast<int>(s);
      out[s].forward = chosen[s].forward;
      out[s].backward_inputs = out[s].backward_weights = chosen[s].backward / 2;
      out[s].update = chosen[s].update;
      if (s + 1 < out.size()) out[s].send_forward = (*this)(stage + 1, ends[s]).forward;
      if (s > 0) out[s].send_backward = (*this)(stage, ends[s - 1]).backward;
    }
    return out;
  }

 private:
  const placed_pools& on_;
  std::vector<double> bytes_;  // of a rank, before each segment
};

}  // namespace cfp::inline v0_1::detail
