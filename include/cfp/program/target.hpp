// What programs are lowered for: how wide numbers are, and what the kernels there compute together.
#pragma once

#include <cfp/program/fuse.hpp>
#include <cfp/program/memory.hpp>

namespace cfp::inline v0_1 {

struct target {
  long real_bytes = sizeof(float);                     ///< of a number that is not wide
  const std::vector<fusion_pattern>* fused = nullptr;  ///< none: every operator by itself. Must outlive this

  constexpr target(long bytes = sizeof(float), const std::vector<fusion_pattern>* patterns = nullptr)
      : real_bytes(bytes), fused(patterns) {}

  /// Makes a program ready whose order is set: fuses, and plans its memory.
  void complete(program& p, const graph& g) const {
    if (fused != nullptr) fuse(p, g, *fused);
    plan_memory(p);
  }
};

}  // namespace cfp
