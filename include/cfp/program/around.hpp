// A tensor seen around one of its dimensions: what packing before a collective walks, and the memory it packs into.
#pragma once

#include <cfp/core/conversion_step.hpp>
#include <cfp/core/placement.hpp>
#include <cfp/model/graph.hpp>

namespace cfp::inline v0_1 {

/// [outer][extent][inner]
struct around {
  long outer = 1, extent = 1, inner = 1;
};

constexpr around view_around(const extents& shape, int dim) {
  around a;
  for (int d = 0; d < shape.size(); ++d) (d < dim ? a.outer : d == dim ? a.extent : a.inner) *= shape[d];
  return a;
}

/// Buffers that a step packs into, each of the larger side: gathering or scattering an inner dimension goes through
/// one, moving pieces through two. `local` is what a device holds before.
constexpr int scratch_buffers(const conversion_step& s, const extents& local) {
  if (s.kind == conversion_step::all_to_all) return 2;
  const bool packs = s.kind == conversion_step::all_gather || s.kind == conversion_step::reduce_scatter;
  return packs && view_around(local, s.dim).outer > 1 ? 1 : 0;
}

}  // namespace cfp
