// Ranks that have an NVIDIA GPU each, their collectives by NCCL. Defined in gpus.cuh, which nvcc compiles, or in the
// compiled library `cfp::kernels`.
#pragma once

#include <cfp/backend/backend.hpp>
#include <cfp/backend/own_kernels.hpp>

namespace cfp::inline v0_1 {

/// A thread of this process, and a GPU, for each device of the mesh; or, where a launcher (torchrun, mpirun, srun)
/// started several processes, this one as one rank of them, with a GPU: see communicator/launched/. Throws
/// bad_input for numbers that GPUs have no kernels for, for kernels of one's own, which must be added where nvcc
/// compiles them, and for a mesh of more or fewer devices than there are processes; device_error if there is no GPU.
/// That a rank has none of its own is met by the first job.
std::unique_ptr<backend> gpus(const mesh_shape& mesh, number type = number::bfloat16, const own_kernels& own = {});

/// The same, but where processes outnumber GPUs several have one in common: what is computed is right, times are none.
std::unique_ptr<backend> shared_gpus(const mesh_shape& mesh, number type = number::bfloat16,
                                     const own_kernels& own = {});

}  // namespace cfp
