// Which ranks a program was built with.
#pragma once

#include <cfp/session/session.hpp>

namespace program {

/// "threads", "mpi", "cuda", "emulated". Throws cfp::bad_input for one it was built without, saying what to install.
cfp::make_ranks ranks_of(const std::string& backend);

/// Runs the program as a process of an MPI job: `main(process)`, where it was built with MPI.
int run_as_process(int (*main)(const struct arguments&), const struct arguments& a);

/// Throws cfp::bad_input unless every process was given the same arguments and files: they plan alike, each by itself.
void same_everywhere(cfp::backend& ranks, const struct arguments& a);

}  // namespace program
