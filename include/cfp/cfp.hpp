// Everything for who plans, verifies and trains models of their own. What needs MPI or nvcc is included beside it:
// backend/processes.hpp, backend/gpus.cuh, backend/emulated_gpus.hpp. For the compile-time checks alone: core.hpp.
#pragma once

#include <cfp/backend/threads.hpp>
#include <cfp/core.hpp>
#include <cfp/families/byte_text.hpp>
#include <cfp/model/loss.hpp>
#include <cfp/model/trace.hpp>
#include <cfp/op/all.hpp>
#include <cfp/session/check_gradients.hpp>
#include <cfp/session/plan_for.hpp>
#include <cfp/session/session.hpp>
