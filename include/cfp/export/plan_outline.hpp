// What a plan's file says of itself before its model is made.
#pragma once

#include <cfp/core/mesh.hpp>

#include <string>

namespace cfp::inline v0_1 {

struct plan_outline {
  std::string model{};    ///< its name, sizes, and how it is trained: "gpt2 layers=2 ... batch=4 sequence=32 bfloat16"
  mesh_shape mesh{};      ///< of all ranks
  int micro_batches = 0;  ///< of a plan in stages; else not said
};

}  // namespace cfp
