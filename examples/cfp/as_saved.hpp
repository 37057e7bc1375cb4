// Options that a saved plan answers by itself.
#pragma once

#include "arguments.hpp"

#include <cfp/export/plan_outline.hpp>

namespace program {

/// With the model, its sizes, the mesh and the training that the plan's file names, where the command line says nothing
/// else. A plan that names no configuration changes nothing.
arguments as_saved(arguments a, const cfp::plan_outline& saved);

}  // namespace program
