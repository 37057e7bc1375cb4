// A limit of memory that no plan keeps.
#pragma once

#include <cfp/core/bad_input.hpp>

#include <string>

namespace cfp::inline v0_1 {

/// No plan was found that keeps the memory limit. `least` is what the leanest plan that was looked at needs, in bytes;
/// if sums of parts excluded all, what these say the leanest needs (0: nothing is known).
struct nothing_fits : bad_input {
  long limit = 0, least = 0;

  nothing_fits(long most, long leanest, const std::string& why) : bad_input(why), limit(most), least(leanest) {}
  nothing_fits(long most, long leanest)
      : nothing_fits(
            most, leanest,
            "memory " + std::to_string(most) + ": no plan fits" + (leanest > 0 ? "; " + needs(most, leanest) : "")) {}

  static std::string needs(long most, long leanest) {
    return "the leanest plan found needs " + std::to_string(leanest) + " bytes, " + std::to_string(leanest - most) +
           " more";
  }
};

}  // namespace cfp
