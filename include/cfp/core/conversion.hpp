// A conversion of one partition into another, and what the cheapest is chosen by.
#pragma once

#include <cfp/core/conversion_step.hpp>

namespace cfp::inline v0_1 {

struct conversion {
  list<conversion_step, 12> steps;
  long bytes = 0;         ///< sent per device, in all steps
  long price = 0;         ///< of all steps, in the unit they were priced in: bytes, unless said otherwise
  bool possible = false;  ///< false when a dimension does not divide

  constexpr int collectives() const {
    int n = 0;
    for (const conversion_step& s : steps) n += s.communicates();
    return n;
  }
};

/// What a conversion is chosen by, beside the bytes it sends.
struct conversion_prices {
  bool several_axes = false;  ///< whether one collective may run along several axes, by a group of devices over all
  long call = 0;              ///< bytes that could be sent in the time a collective takes before it sends any

  static constexpr bool one_step_is_best = true;  ///< a step that leads there is taken, whatever others would cost
  /// Of a step that follows `from`; negative: it is not taken.
  constexpr long operator()(const conversion_step& s, const partition&, long sent) const {
    return sent + (s.communicates() ? call : 0);
  }
};

}  // namespace cfp
