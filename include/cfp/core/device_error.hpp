// What a GPU, or a library that drives one, refused.
#pragma once

#include <cfp/core/long_error.hpp>

namespace cfp::inline v0_1 {

struct device_error : long_error {
  using long_error::long_error;
};

}  // namespace cfp
