// Ranks that are threads of this process: nothing to set up.
#pragma once

#include <cfp/backend/backend.hpp>
#include <cfp/backend/own_kernels.hpp>
#include <cfp/communicator/threads/run_ranks.hpp>
#include <cfp/core/config.hpp>

namespace cfp::inline v0_1 {

/// A thread for each device of the mesh. Throws bad_input for numbers that the host has no kernels for.
std::unique_ptr<backend> threads(const mesh_shape& mesh, number type = number::float32, const own_kernels& own = {});

/// The same; collectives on the first axes take at least as long as over these links.
std::unique_ptr<backend> linked_threads(const mesh_shape& mesh, number type, const std::vector<rank_link>& links);

}  // namespace cfp

#if !defined(CFP_COMPILED)
#include <cfp/backend/host/threads.hpp>
#endif
