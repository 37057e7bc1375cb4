// Which ranks a program was built with.
#pragma once

#include <cfp/session/session.hpp>

namespace program {

/// Those of --backend. Throws cfp::bad_input for one it was built without, saying what to install.
cfp::make_ranks ranks_of(const struct arguments& a);

/// Runs a command here, or, where this process is one rank of several, as that: the first of them speaks. They plan
/// alike, each by itself, so throws cfp::bad_input unless all were given the same arguments and files.
int run_command(int (*command)(const struct arguments&), const struct arguments& a);

}  // namespace program
