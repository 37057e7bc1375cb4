// A graph whose tensors hold random numbers: for programs that get their inputs from nowhere.
#pragma once

#include <cfp/model/graph.hpp>

namespace cfp::inline v0_1 {

/// The same graph with every tensor but states and indices filled with random numbers.
inline graph with_random_inputs(graph g) {
  for (value& v : g.values)
    if (v.type != element::index && v.role != value_role::state)
      v.fill = {0.0, v.role == value_role::weight ? 0.02 : 1.0, 0, true};
  return g;
}

}  // namespace cfp
