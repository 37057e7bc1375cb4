// The same training with optimizer state of 32 bits.
#pragma once

#include <cfp/model/graph.hpp>

#include <algorithm>

namespace cfp::inline v0_1 {

/// Whether state is stored in fewer bits than that.
inline bool has_lean_state(const graph& g) {
  return std::any_of(g.values.begin(), g.values.end(), [](const value& v) { return is_lean(v.type); });
}

inline graph with_full_state(graph g) {
  for (value& v : g.values)
    if (is_lean(v.type)) v.type = element::wide;
  return g;
}

}  // namespace cfp
