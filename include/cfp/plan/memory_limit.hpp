// How a limit of memory is kept, which sums of parts only come near.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

namespace cfp::inline v0_1 {

/// The next limit for sums of parts, when a plan within `now` (none: no limit yet) of which they said `sum` needs
/// `over` more than `wanted`: below that plan's own sum, and by enough that few such steps do. Bytes.
inline std::int64_t lower_limit(std::optional<std::int64_t> now, std::int64_t sum, std::int64_t over,
                                std::int64_t wanted) {
  return std::min(sum, now.value_or(sum)) - std::max(over, wanted / 200);
}

}  // namespace cfp
