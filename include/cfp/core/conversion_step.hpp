// One step of a conversion of a partition: what it does, the partition after it, and the bytes a device sends in it.
#pragma once

#include <cfp/core/collective.hpp>
#include <cfp/core/compression.hpp>
#include <cfp/core/partition.hpp>

namespace cfp::inline v0_1 {

/// One step of a conversion, along one mesh axis; a collective also along several at once.
struct conversion_step {
  enum kind_t : std::uint8_t {
    all_reduce,      ///< partial -> replicate
    all_gather,      ///< split(dim) -> replicate
    reduce_scatter,  ///< partial -> split(dim)
    all_to_all,      ///< split(dim) -> split(to)
    slice,           ///< replicate -> split(dim), local
    mask,            ///< replicate -> partial, local: the first device of the axis keeps it, the others hold zero
    pad,             ///< split(dim) -> partial, local: zero outside the own piece
  } kind = slice;
  signed char axis = 0, dim = 0, to = 0;
  reduction combine = reduction::sum;
  unsigned char axes = 0;  ///< of a collective along several: a bit for each; `axis` is the first of them, then
  compression sent_as = compression::none;  ///< of sums: pieces are moved so, each added up by one device
  friend constexpr bool operator==(const conversion_step&, const conversion_step&) = default;

  constexpr bool along(int a) const { return axes == 0 ? a == axis : (axes >> a & 1) != 0; }
  /// Those it is along, a bit each.
  constexpr unsigned set() const { return axes == 0 ? 1U << axis : axes; }
  /// Devices that take part together.
  constexpr long devices(const mesh_shape& mesh) const {
    long n = 1;
    for (int a = 0; a < mesh.rank(); ++a)
      if (along(a)) n *= mesh.size(a);
    return n;
  }

  constexpr bool communicates() const { return kind <= all_to_all; }
  constexpr bool sums() const { return (kind == all_reduce || kind == reduce_scatter) && combine == reduction::sum; }
  constexpr collective_kind collective() const { return static_cast<collective_kind>(kind); }
};

/// By `conversion_step::kind`.
inline constexpr std::string_view step_names[] = {"all_reduce", "all_gather", "reduce_scatter", "all_to_all", "slice",
                                                  "mask",       "pad"};

/// The partition after a step. Only the innermost axes of a dimension can be gathered or moved; what is scattered over
/// several axes is split by them in the order of the mesh, what is moved as it was.
constexpr partition after(partition p, const conversion_step& s) {
  using step = conversion_step;
  const auto parts_done = [&] {
    for (int a = 0; a < max_axes; ++a)
      if (s.along(a)) p.partial[a] = {};
  };
  const auto unsplit = [&] {
    list<signed char, max_axes> moved;
    while (!p.dims[s.dim].empty() && s.along(p.dims[s.dim].back()))
      moved.insert(0, p.dims[s.dim].back()), p.dims[s.dim].pop();
    return moved;
  };
  switch (s.kind) {
    case step::all_reduce: parts_done(); break;
    case step::reduce_scatter:
      parts_done();
      for (int a = 0; a < max_axes; ++a)
        if (s.along(a)) p.split(s.dim, a);
      break;
    case step::all_gather: unsplit(); break;
    case step::all_to_all:
      for (signed char a : unsplit()) p.split(s.to, a);
      break;
    case step::slice: p.split(s.dim, s.axis); break;
    case step::mask: p.partial[s.axis] = {true, reduction::sum}; break;
    case step::pad:
      p.dims[s.dim].pop();
      p.partial[s.axis] = {true, reduction::sum};
      break;
  }
  return p;
}

/// Elements of the tensor as held without the split along the axes of a step; `p` is the partition before it,
/// `elements` those of the unsplit tensor. What `bytes_sent` is of.
constexpr long elements_before_split(const conversion_step& s, const partition& p, long elements,
                                     const mesh_shape& mesh) {
  for (int d = 0; d < p.rank(); ++d)
    for (signed char a : p.dims[d])
      if (!s.along(a)) elements /= mesh.size(a);
  return elements;
}

/// Bytes a device sends in this step; `p` is the partition before it, `bytes` the size of the unsplit tensor.
constexpr long bytes_sent(const conversion_step& s, const partition& p, long bytes, const mesh_shape& mesh) {
  return s.communicates() ? bytes_sent(s.collective(), elements_before_split(s, p, bytes, mesh), s.devices(mesh)) : 0;
}

}  // namespace cfp
