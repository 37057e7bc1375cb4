// Runs one function on every rank of a mesh, a process each that a launcher has started; the errors of all ranks arrive
// as one exception, on every one of them.
#pragma once

#include <cfp/communicator/launched/launched_communicator.hpp>
#include <cfp/communicator/launched/launched_rank.hpp>
#include <cfp/communicator/launched/launched_world.hpp>
#include <cfp/communicator/one_rank_pool.hpp>
#include <cfp/core/bad_input.hpp>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace cfp::inline v0_1 {

using launched_context = rank_context_of<launched_world, launched_communicator>;

/// This process as one rank of a mesh. A job may make several pools, one after another or beside each other, all
/// processes in the same order; when one has failed others can go on.
class launched_pool : public one_rank_pool<launched_world, launched_communicator> {
 public:
  /// As the environment says. Throws bad_input if no launcher has started this process, if what it says cannot be, and
  /// unless the mesh has as many ranks as it has started processes; communicator_error if these do not find each other
  /// within `to_start`.
  explicit launched_pool(std::vector<int> mesh, std::chrono::nanoseconds to_start = std::chrono::minutes(10))
      : launched_pool(std::move(mesh), of_environment(), to_start) {}
  /// As this says.
  launched_pool(std::vector<int> mesh, const launched_rank& me,
                std::chrono::nanoseconds to_start = std::chrono::minutes(10))
      : one_rank_pool(std::move(mesh), me, to_start) {}

 private:
  static launched_rank of_environment() {
    if (const auto me = find_launched_rank()) return *me;
    throw bad_input(
        "no launcher has started this process: RANK and WORLD_SIZE are not set, nor what mpirun and srun set; start it "
        "with torchrun --nproc-per-node N, mpirun -n N or srun -n N");
  }
};

}  // namespace cfp
