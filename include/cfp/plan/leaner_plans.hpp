// Plans that people use and that do not fit, with less kept, as far as may be needed.
#pragma once

#include <cfp/plan/machine_options.hpp>
#include <cfp/plan/narrowed.hpp>
#include <cfp/plan/priced_plans.hpp>

#include <algorithm>
#include <cstddef>
#include <limits>

namespace cfp::inline v0_1 {

/// Adds them, where parts may keep less. `search` prices plans; of what takes `within` milliseconds or more nobody
/// asks.
template <class Search>
void add_leaner(Search& search, const decision_graph& d, const machine_options& options, priced_plans& to,
                double within = std::numeric_limits<double>::infinity()) {
  if (std::all_of(d.nodes.begin(), d.nodes.end(), [](const decision& n) { return n.kept.empty(); })) return;
  for (std::size_t n = 0, all = to.usual.size(); n < all; ++n) {
    const evaluated e = to.usual[n];
    if (e.fits || e.when.ms >= within) continue;
    for (const auto& [how, choices] : leaner(e.p.choices, d)) {
      if (options.over()) break;
      to.usual.push_back(search.estimate(e.p.name + ", " + how, choices, e.order));
      if (to.usual.back().fits) break;
    }
  }
}

}  // namespace cfp
