// What is asked of a plan for a machine, as its searches take it.
#pragma once

#include <cfp/backend/cuda/fusions.hpp>
#include <cfp/core/bad_input.hpp>
#include <cfp/session/machine_plan_options.hpp>

#include <chrono>
#include <cmath>
#include <string>

namespace cfp::inline v0_1::detail {

// Time begins now.
inline machine_options search_options(const machine_plan_options& o) {
  if (!(o.seconds > 0)) throw bad_input("seconds must be more than 0, are " + std::to_string(o.seconds));
  machine_options out;
  if (o.seconds < 1e9)
    out.until = std::chrono::steady_clock::now() + std::chrono::milliseconds(std::lround(1000 * o.seconds));
  out.memory = o.memory;
  out.clock = o.clock;
  out.together = o.together;
  out.recompute = o.recompute;
  out.lowered_for = o.unfused ? target(bytes_of(o.type)) : cuda::catalogue_target(o.type);
  return out;
}

}  // namespace cfp::inline v0_1::detail
