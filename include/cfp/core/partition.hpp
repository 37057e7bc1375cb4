// A partition: for each dimension of a tensor the mesh axes that split it (major first), and the axes over which
// the tensor is partial. Every other axis replicates. Equal meaning is equal value: axes of size one never appear.
#pragma once

#include <cfp/core/mesh.hpp>
#include <cfp/core/placement.hpp>

namespace cfp::inline v0_1 {

inline constexpr int max_dims = 8;

/// Sizes of the dimensions of a tensor, in elements.
using extents = list<long, max_dims>;

struct partition {
  struct debt {
    bool owed = false;
    reduction combine = reduction::sum;
    friend constexpr bool operator==(const debt&, const debt&) = default;
  };

  list<list<signed char, max_axes>, max_dims> dims;  ///< axes of each dimension, major first
  debt partial[max_axes]{};                          ///< per axis

  static constexpr partition replicated(int rank) {
    partition p;
    for (int i = 0; i < rank; ++i) p.dims.push({});
    return p;
  }

  constexpr int rank() const { return dims.size(); }

  /// Dimension that this axis splits, or -1.
  constexpr int dim_of(int axis) const {
    for (int d = 0; d < dims.size(); ++d)
      if (dims[d].contains(static_cast<signed char>(axis))) return d;
    return -1;
  }

  constexpr placement on(int axis) const {
    if (partial[axis].owed) return {placement::partial, 0, partial[axis].combine};
    const int d = dim_of(axis);
    return d < 0 ? placement{} : placement{placement::split, d, reduction::sum};
  }

  constexpr bool is_partial() const {
    for (const debt& p : partial)
      if (p.owed) return true;
    return false;
  }

  constexpr void split(int dim, int axis) { dims[dim].push(static_cast<signed char>(axis)); }

  friend constexpr bool operator==(const partition& a, const partition& b) {
    if (!(a.dims == b.dims)) return false;
    for (int i = 0; i < max_axes; ++i)
      if (!(a.partial[i] == b.partial[i])) return false;
    return true;
  }
};

/// Another number for every partition of tensors of one rank: what each axis does, and in which order those of a
/// dimension split it, eight bits each.
constexpr unsigned number_of(const partition& p) {
  static_assert(max_axes * 8 <= 32 && max_dims * max_axes < 64);
  unsigned out = 0;
  for (int d = 0; d < p.rank(); ++d)
    for (int i = 0; i < p.dims[d].size(); ++i) out |= static_cast<unsigned>(1 + d * max_axes + i) << 8 * p.dims[d][i];
  for (int a = 0; a < max_axes; ++a)
    if (p.partial[a].owed) out |= static_cast<unsigned>(1 + static_cast<int>(p.partial[a].combine)) << (8 * a + 6);
  return out;
}

/// Number of pieces a dimension is cut into.
constexpr long pieces(const partition& p, int dim, const mesh_shape& mesh) {
  long n = 1;
  for (signed char a : p.dims[dim]) n *= mesh.size(a);
  return n;
}

/// Whether every dimension divides evenly.
constexpr bool divides(const partition& p, const extents& shape, const mesh_shape& mesh) {
  for (int d = 0; d < p.rank(); ++d)
    if (shape[d] % pieces(p, d, mesh) != 0) return false;
  return true;
}

/// What one device holds.
constexpr extents local_shape(const partition& p, const extents& shape, const mesh_shape& mesh) {
  extents local = shape;
  for (int d = 0; d < p.rank(); ++d) local[d] = shape[d] / pieces(p, d, mesh);
  return local;
}

/// Which piece of a dimension a device holds (0-based; its first element is piece * local size).
constexpr long piece_of(const partition& p, int dim, const mesh_shape& mesh, int device) {
  long index = 0;
  for (signed char a : p.dims[dim]) index = index * mesh.size(a) + mesh.coordinate(device, a);
  return index;
}

constexpr long elements(const extents& shape) {
  long n = 1;
  for (long e : shape) n *= e;
  return n;
}

}  // namespace cfp
