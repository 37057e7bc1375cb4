// Ranks that are processes of an MPI job, on one machine or many.
#pragma once

#include <cfp/backend/host/host_ranks.hpp>
#include <cfp/communicator/mpi/run_processes.hpp>

namespace cfp::inline v0_1 {

/// This process as one rank of the mesh: every process of the job makes it alike. Throws bad_input unless
/// the mesh has as many devices as the job has processes.
inline std::unique_ptr<backend> processes(const mesh_shape& mesh, number type = number::float32,
                                          const own_kernels& own = {}) {
  return detail::host_ranks<process_pool, process_context>(mesh, type, own, this_processor());
}

}  // namespace cfp
