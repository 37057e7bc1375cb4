// Stages of a model: how it is cut, what each does on its ranks, and when.
#pragma once

#include <cfp/core/mesh.hpp>
#include <cfp/pipeline/named_schedules.hpp>
#include <cfp/program/stages/stage_mesh.hpp>

#include <algorithm>
#include <string>
#include <vector>

namespace cfp::inline v0_1 {

struct staged_layout {
  mesh_shape inside;                ///< ranks of a stage
  int places = 1, chunks = 1;       ///< ranks along the stages, and stages of each
  std::string schedule = "1f1b";    ///< of `named_schedules`
  std::vector<int> first{};         ///< forward operations that stages but the first begin with
  std::vector<int> pools{};         ///< of each place, which pool of the machines it is in; none: all in the first
  std::vector<stage_cost> costs{};  ///< of each stage, for the order of what is sent; none: forward 1, backward 2

  int stages() const { return places * chunks; }
  /// Micro-batches that a stage has under way at most, where a step has so many.
  int under_way(int stage, int micro_batches) const {
    const int behind = places - stage % places - 1;
    int of_place = behind + 1;  // of all its stages
    if (chunks > 1) of_place = 2 * behind + (chunks - 1) * places + 1;
    if (schedule == "zb_h1") of_place = places;
    return std::min((of_place + chunks - 1) / chunks, micro_batches);
  }
  mesh_shape whole() const { return with_stages(inside, places); }  ///< of all ranks
  pipeline_schedule schedule_of(int micro_batches) const {
    return schedule_named(schedule, {places, micro_batches, chunks, costs.empty() ? stage_cost{} : costs.front()});
  }
};

}  // namespace cfp
