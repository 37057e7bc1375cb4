// Runs one function on every rank of a mesh, a process each; the errors of all ranks arrive as one exception, on every
// one of them.
#pragma once

#include <cfp/communicator/mpi/processes.hpp>
#include <cfp/communicator/one_rank_pool.hpp>

#include <utility>
#include <vector>

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

/// This process as one rank of a mesh. A process that does not end within the deadline after a failure is ended, with
/// all others.
class process_pool : public one_rank_pool<process_world, process_communicator> {
 public:
  /// Throws bad_input for a size below 1, and unless the mesh has as many ranks as there are processes.
  explicit process_pool(std::vector<int> mesh) : one_rank_pool(std::move(mesh)) {}
};

}  // namespace cfp
