// A tensor seen around one of its dimensions: what packing before a collective walks.
#pragma once

#include <cfp/core/placement.hpp>
#include <cfp/model/graph.hpp>

namespace cfp::inline v0_1 {

/// [outer][extent][inner]
struct around {
  long outer = 1, extent = 1, inner = 1;
};

inline around view_around(const extents& shape, int dim) {
  around a;
  for (int d = 0; d < shape.size(); ++d) (d < dim ? a.outer : d == dim ? a.extent : a.inner) *= shape[d];
  return a;
}

}  // namespace cfp
