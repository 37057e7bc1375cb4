// Ranks that have an NVIDIA GPU each, their collectives by NCCL. Defined in gpus.cuh, which nvcc compiles, or in the
// compiled library `cfp::kernels`.
#pragma once

#include <cfp/backend/backend.hpp>
#include <cfp/backend/own_kernels.hpp>

namespace cfp::inline v0_1 {

/// A thread of this process, and a GPU, for each device of the mesh. Throws bad_input for numbers that GPUs
/// have no kernels for, and for kernels of one's own, which must be added where nvcc compiles them.
std::unique_ptr<backend> gpus(const mesh_shape& mesh, number type = number::bfloat16, const own_kernels& own = {});

}  // namespace cfp
