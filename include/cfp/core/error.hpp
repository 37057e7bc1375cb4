// The root of everything this library throws: a sentence, and a few kinds.
#pragma once

#include <exception>

namespace cfp::inline v0_1 {

/// What is thrown is below it, by kind: bad_input, shape_error, limit_reached, nothing_fits, rank_failure,
/// device_error, cancelled (page 12 says which is thrown where).
struct error : std::exception {};

}  // namespace cfp
