// Runs one function on every rank of a mesh, a process each that a launcher has started; the errors of all ranks arrive
// as one exception, on every one of them.
#pragma once

#include <cfp/communicator/launched/launched_communicator.hpp>
#include <cfp/communicator/launched/launched_rank.hpp>
#include <cfp/communicator/launched/launched_world.hpp>
#include <cfp/core/bad_input.hpp>

#include <chrono>
#include <exception>
#include <string>
#include <utility>
#include <vector>

namespace cfp::inline v0_1 {

using launched_context = rank_context_of<launched_world, launched_communicator>;

/// This process as one rank of a mesh; runs one job after another. All processes of the job do the same. They may make
/// several pools, one after another or beside each other, all in the same order.
class launched_pool {
 public:
  /// As the environment says. Throws bad_input if no launcher has started this process, if what it says
  /// cannot be, and unless the mesh has as many ranks as it has started processes; communicator_error if these do not
  /// find each other within `to_start`.
  explicit launched_pool(std::vector<int> mesh, std::chrono::nanoseconds to_start = std::chrono::minutes(10))
      : launched_pool(std::move(mesh), of_environment(), to_start) {}
  /// As this says.
  launched_pool(std::vector<int> mesh, const launched_rank& me,
                std::chrono::nanoseconds to_start = std::chrono::minutes(10))
      : world_(std::move(mesh), me, to_start), context_(world_, world_.rank()) {}

  int size() const { return world_.size(); }
  int rank() const { return world_.rank(); }
  bool is_first() const { return rank() == 0; }
  const std::vector<int>& mesh() const { return world_.mesh(); }
  int on_this_machine() const { return world_.on_this_machine(); }  ///< ranks

  /// How long a rank waits for others before it fails: 10 minutes unless set.
  void set_deadline(std::chrono::nanoseconds limit) { world_.set_deadline(limit); }

  /// Calls f(launched_context&) here, as every process does, and returns when all have ended. Throws rank_failure on
  /// all of them if any has failed; the pool can then not be used again, another can.
  template <class F>
  void run(F&& f) {
    for (auto& axis : context_.axes) axis.reset_counted();
    context_.world.reset_counted();
    try {
      f(context_);
      world_.leave();
    } catch (const std::exception& e) {
      world_.fail(rank(), e.what());
    } catch (...) {
      world_.fail(rank(), "an exception that is no std::exception");
    }
    if (!world_.end()) throw rank_failure(world_.errors());
  }

 private:
  static launched_rank of_environment() {
    if (const auto me = find_launched_rank()) return *me;
    throw bad_input(
        "no launcher has started this process: RANK and WORLD_SIZE are not set, nor what mpirun and srun set; start it "
        "with torchrun --nproc-per-node N, mpirun -n N or srun -n N");
  }

  launched_world world_;
  launched_context context_;
};

}  // namespace cfp
