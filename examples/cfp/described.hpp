// Plans for machines that are described, found as the command line says.
#pragma once

#include "arguments.hpp"

#include <cfp/session/plan_in_stages.hpp>

#include <string>

namespace program {

/// What they are of: with what people train there, unless said otherwise.
struct described_plan {
  arguments sized;
  made_model net;
  cfp::machine_plan found;  ///< may not fit
};
/// The plan found, or the saved one that was given. Of hundreds of layers, `folded`, few are written.
described_plan plan_there(const arguments& a, bool folded);
/// The command that trains under the plan that was saved.
std::string how_to_train(const arguments& sized, const std::string& mesh, int micro_batches, const std::string& type);
/// Throws bad_input, which says why nothing fits.
void check_fits(const arguments& a, const cfp::machine_plan& found);

struct described_stages {
  arguments sized;
  made_model net;
  cfp::stages_plan found;
};
/// Throws bad_input where there is none.
described_stages stages_there(const arguments& a);

/// Options of `plan` that say how ranks here are measured, or of what a machine that is described: throws bad_input for
/// one that does not go with the others.
void check_planning(const arguments& a);

}  // namespace program
