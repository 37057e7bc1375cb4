// Runs one function on every rank of a mesh, a process each; the errors of all ranks arrive as one exception, on every
// one of them.
#pragma once

#include <cfp/communicator/mpi/processes.hpp>

namespace cfp::inline v0_1 {

using process_context = rank_context_of<process_world, process_communicator>;

/// MPI of this process: the first thing in main(), so that it ends last.
class process_job {
 public:
  /// Throws communicator_error if MPI cannot serve several threads: streams of a rank that run beside are threads.
  process_job() {
    int threads = 0;
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &threads);
    if (threads < MPI_THREAD_MULTIPLE)
      throw communicator_error("this MPI was built without support for several threads (MPI_THREAD_MULTIPLE)");
  }
  process_job(const process_job&) = delete;
  ~process_job() { MPI_Finalize(); }
};

/// This process as one rank of a mesh; runs one job after another. All processes of the job do the same.
class process_pool {
 public:
  /// Throws bad_input for a size below 1, and unless the mesh has as many ranks as there are processes.
  explicit process_pool(std::vector<int> mesh) : world_(std::move(mesh)), context_(world_, world_.rank()) {}

  int size() const { return world_.size(); }
  int rank() const { return world_.rank(); }
  bool is_first() const { return rank() == 0; }
  const std::vector<int>& mesh() const { return world_.mesh(); }
  int on_this_machine() const { return world_.on_this_machine(); }  ///< ranks

  /// How long a rank waits for others before it fails: 10 minutes unless set.
  void set_deadline(std::chrono::nanoseconds limit) { world_.set_deadline(limit); }

  /// Calls f(process_context&) here, as every process does, and returns when all have ended. Throws rank_failure on all
  /// of them if any has failed; the pool can then not be used again. A process that does not end within the deadline
  /// after a failure is ended, with all others.
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
  process_world world_;
  process_context context_;
};

}  // namespace cfp
