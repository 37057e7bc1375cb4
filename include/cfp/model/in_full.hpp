// The same training with nothing stored or sent in fewer bits than it is computed in.
#pragma once

#include <cfp/model/graph.hpp>

#include <algorithm>

namespace cfp::inline v0_1 {

/// Optimizer state of 32 bits, and sums of gradients as they are.
inline graph in_full(graph g) {
  for (value& v : g.values)
    if (is_lean(v.type)) v.type = element::wide;
  g.gradients = compression::none;
  return g;
}

inline bool is_in_full(const graph& g) {
  return g.gradients == compression::none &&
         std::none_of(g.values.begin(), g.values.end(), [](const value& v) { return is_lean(v.type); });
}

}  // namespace cfp
