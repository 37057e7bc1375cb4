// The programs of a pipeline: one for the ranks of each place along its stages.
#pragma once

#include <cfp/program/program.hpp>

#include <cstddef>
#include <vector>

namespace cfp::inline v0_1 {

/// A program for each place along the stages.
struct stage_programs {
  graph g;                     ///< what they are programs of: `with_summed_loss`
  std::vector<program> along;  ///< of each rank of the schedule

  /// That of a rank of the mesh, whose first axis is of stages.
  const program& of(int rank) const {
    const int places = static_cast<int>(along.size()), ranks = along.front().mesh.devices();
    return along[static_cast<std::size_t>(rank / (ranks / places))];
  }
};

/// What ranks run: all of them one program, or each that of its place. It must outlive this.
class rank_programs {
 public:
  rank_programs(const program& all) : all_(&all) {}
  rank_programs(const stage_programs& in_stages) : in_stages_(&in_stages) {}

  const program& of(int rank) const { return all_ != nullptr ? *all_ : in_stages_->of(rank); }
  /// What they are programs of: the training graph, or what was made of it for stages.
  const graph& graph_of(const graph& training) const { return all_ != nullptr ? training : in_stages_->g; }

 private:
  const program* all_ = nullptr;
  const stage_programs* in_stages_ = nullptr;
};

}  // namespace cfp
