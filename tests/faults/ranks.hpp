// Ranks that pass moments: threads, processes of an MPI job, processes with a GPU each over the stand-in.
#pragma once

#include <cfp/session/session.hpp>

#include <string>

namespace faults {

/// "threads", "mpi" or "gpus". Throws cfp::bad_input for one this program was built without.
cfp::make_ranks ranks_of(const std::string& world);

}  // namespace faults
