// Ranks that have a GPU each which is emulated on a CPU: what would run on GPUs, where there are none, some thousand
// times as slow. Times measured here say nothing.
#pragma once

#include <cfp/backend/backend.hpp>
#include <cfp/backend/own_kernels.hpp>
#include <cfp/core/config.hpp>

namespace cfp::inline v0_1 {

/// A thread of this process, and a GPU, for each device of the mesh. Kernels of one's own run on the host. Throws
/// bad_input for numbers that GPUs have no kernels for.
std::unique_ptr<backend> emulated_gpus(const mesh_shape& mesh, number type = number::bfloat16,
                                       const own_kernels& own = {});

/// The same; the threads of a block take turns in an order of that number (0: by theirs). A result that depends on it
/// shows that a kernel lacks a sync.
std::unique_ptr<backend> emulated_gpus_in_order(const mesh_shape& mesh, number type, unsigned order,
                                                const own_kernels& own = {});

}  // namespace cfp

#if !defined(CFP_EMULATED_COMPILED)
#include <cfp/backend/emulated/gpus.hpp>
#endif
