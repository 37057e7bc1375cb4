// What somebody gave that cannot be: one sentence that says what, and how to mend it.
#pragma once

#include <stdexcept>

namespace cfp::inline v0_1 {

/// A program ends with it on stderr and exit code 2.
struct bad_input : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace cfp
