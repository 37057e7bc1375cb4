// What somebody gave that cannot be: one sentence that says what, and how to mend it.
#pragma once

#include <cfp/core/long_error.hpp>

namespace cfp::inline v0_1 {

/// A program ends with it on stderr and exit code 2.
struct bad_input : long_error {
  using long_error::long_error;
};

}  // namespace cfp
