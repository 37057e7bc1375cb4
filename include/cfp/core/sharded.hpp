// A tensor and its partition as one type: named dimensions, a mesh, and what each axis of the mesh does.
//
//   using mesh = cfp::mesh<cfp::axis<"data", 2>, cfp::axis<"model", 4>>;
//   using x = cfp::sharded<cfp::dims<"batch=32", "width">, mesh, cfp::split<"batch", "data">>;   // the rest replicated
//
// Equal meaning is the same type: partitioned<dims<...>, mesh<...>, "batch:data">.
#pragma once

#include <cfp/core/check.hpp>
#include <cfp/core/dims.hpp>
#include <cfp/core/explain.hpp>
#include <cfp/core/refused.hpp>

namespace cfp::inline v0_1 {

namespace detail {

// split<"dim", "axis"...>, or partial<"axis"> (no dimension).
struct placement_text {
  std::string_view dim;
  list<std::string_view, max_axes> axes;
  reduction combine = reduction::sum;
};

inline constexpr int max_placements = max_axes + 1;  // one more than can be right

struct partition_read {
  partition value{};
  sharding_problem problem{};
};

struct partition_reader {
  const dimensions& d;
  const mesh_shape& m;
  partition_read out;
  int split_by[max_dims]{};
  bool used[max_axes]{};

  constexpr int axis(std::string_view label) {
    if (out.problem) return -1;
    const int a = m.find(label);
    if (a < 0) out.problem = {sharding_problem::unknown_axis, name(label)};
    else if (used[a]) out.problem = {sharding_problem::axis_twice, name(label)};
    if (a >= 0) used[a] = true;
    return a;
  }
  constexpr int dimension(std::string_view label) {
    if (out.problem) return -1;
    const int dim = d.find(label);
    if (dim < 0) out.problem = {sharding_problem::unknown_dimension, name(label)};
    else if (split_by[dim]++ > 0) out.problem = {sharding_problem::dimension_twice, name(label)};
    return dim;
  }
  constexpr void split(int dim, std::string_view label) {
    const int a = axis(label);
    if (!out.problem && m.size(a) > 1) out.value.split(dim, a);
  }
  constexpr void partial(std::string_view label, reduction combine) {
    const int a = axis(label);
    if (!out.problem && m.size(a) > 1) out.value.partial[a] = {true, combine};
  }
  constexpr void read(const placement_text& w) {
    const int dim = w.dim.empty() ? -1 : dimension(w.dim);
    for (const std::string_view label : w.axes)
      if (w.dim.empty()) partial(label, w.combine);
      else split(dim, label);
  }
};

// Reads what `describe` wrote.
constexpr partition read_placement(std::string_view source, const dimensions& d, const mesh_shape& m) {
  partition p = partition::replicated(d.rank());
  const char* const c = source.data();
  const std::size_t end = source.size();
  for (std::size_t at = 0; at < end;) {
    std::size_t colon = at, stop = 0;
    while (colon < end && c[colon] != ':' && c[colon] != ' ') ++colon;
    for (stop = colon; stop < end && c[stop] != ' ';) ++stop;
    const std::string_view what(c + at, colon - at);
    at = stop + 1;
    if (colon == stop) {  // no axis: "replicated"
      if (!same(what, "replicated") || end != what.size()) throw limit_reached("a placement is written dimension:axis");
      continue;
    }
    const int a = m.find({c + colon + 1, stop - colon - 1}), dim = d.find(what);
    if (a < 0) throw limit_reached("a placement names an axis the mesh does not have");
    if (p.dim_of(a) >= 0 || p.partial[a].owed) throw limit_reached("a placement names an axis twice");
    if (dim >= 0) p.split(dim, a);
    else if (same(what, "partial")) p.partial[a] = {true, reduction::sum};
    else if (same(what, "partial_max")) p.partial[a] = {true, reduction::max};
    else if (same(what, "partial_min")) p.partial[a] = {true, reduction::min};
    else throw limit_reached("a placement names a dimension the tensor does not have");
  }
  return p;
}

}  // namespace detail

/// The axes that split a dimension (or a part of a compound one), major first.
template <lit Dim, lit... Axis>
struct split {
  static_assert(sizeof...(Axis) > 0 && sizeof...(Axis) <= max_axes, "split<dimension, axis...> names one to four axes");
  static_assert(Dim.size() > 0 && Dim.size() <= name::capacity && ((Axis.size() <= name::capacity) && ...),
                "names have 1 to 23 characters");
  static constexpr detail::placement_text value{Dim.view(), {{Axis.view()...}, sizeof...(Axis)}, reduction::sum};
};

/// Every device along the axis holds a part of a sum (or of a maximum, a minimum).
template <lit Axis, reduction Combine = reduction::sum>
struct partial {
  static_assert(Axis.size() <= name::capacity, "names have 1 to 23 characters");
  static constexpr detail::placement_text value{{}, {{Axis.view()}, 1}, Combine};
};

namespace detail {

constexpr partition_read read_partition(const list<placement_text, max_placements>& written, const dimensions& d,
                                        const mesh_shape& m) {
  partition_reader r{d, m, {partition::replicated(d.rank()), {}}};
  for (const placement_text& w : written) r.read(w);
  if (r.out.problem) return r.out;
  r.out.problem = size_problem(d, r.out.value, m, d.sizes);
  return r.out;
}

}  // namespace detail

/// The canonical type. `Placement` is what `describe` prints of the partition.
template <class Dims, class Mesh, lit Placement>
struct partitioned {
  using dims_type = Dims;
  using mesh_type = Mesh;
  static constexpr partition held = detail::read_placement(Placement.view(), Dims::value, Mesh::shape);

  /// Whether the size of every dimension is known here.
  static constexpr bool sized = Dims::value.known();

  /// What is wrong with sizes that only run time knows (one per part of a dimension), in the words a compiler would
  /// use; empty where they divide.
  static constexpr sentence problem(const extents& sizes) {
    return words(detail::size_problem(Dims::value, held, Mesh::shape, sizes), Dims::value, held, Mesh::shape);
  }

  /// Where in the tensor what a device holds begins.
  static constexpr extents first(int device, const extents& sizes = Dims::value.sizes) {
    extents out = local(sizes);
    for (int d = 0; d < out.size(); ++d) out[d] *= piece_of(held, d, Mesh::shape, device);
    return out;
  }

  /// What one device holds of a tensor of these sizes.
  static constexpr extents local(const extents& sizes = Dims::value.sizes) {
    return local_shape(held, sizes, Mesh::shape);
  }
};

namespace detail {

// Only the text is kept, constants cost the compiler memory; what is wrong is found again where something is.
struct canonical_placement {
  text<199> placement;
  bool fits = true;
};
constexpr canonical_placement place(const list<placement_text, max_placements>& written, const dimensions& d,
                                    const mesh_shape& m) {
  const partition_read r = read_partition(written, d, m);
  canonical_placement out;
  out.fits = d.readable && !r.problem;
  if (out.fits) out.placement = describe<199>(r.value, d.parts, m);
  return out;
}

template <class Dims, class Mesh, class... P>
struct placing {
  static_assert(sizeof...(P) <= max_placements, "a partition names at most as many splits as a mesh has axes");
  static constexpr canonical_placement placed = place({{P::value...}, sizeof...(P)}, Dims::value, Mesh::shape);
};

// What is wrong with dimensions, or with a partition of them; the sentence is made where there is something to say.
template <class Dims, class Mesh, class... P>
consteval bool require_partition() {
  if constexpr (!Dims::value.readable) {
    constexpr sentence why = Dims::problem();
    constexpr auto s = shorten<why.count>(why);
    if constexpr (Dims::problem_column() > 0) return dimension_can_be_read<said<s>>();
    else return dimensions_have_different_names<said<s>>();
  } else {
    constexpr partition_read read = read_partition({{P::value...}, sizeof...(P)}, Dims::value, Mesh::shape);
    constexpr sentence why = words(read.problem, Dims::value, read.value, Mesh::shape);
    constexpr auto s = shorten<why.count>(why);
    using w = sharding_problem;
    if constexpr (read.problem.kind == w::unknown_dimension) return dimension_is_of_the_tensor<said<s>>();
    else if constexpr (read.problem.kind == w::unknown_axis) return axis_is_of_the_mesh<said<s>>();
    else if constexpr (read.problem.kind == w::axis_twice) return axis_is_used_once<said<s>>();
    else if constexpr (read.problem.kind == w::dimension_twice) return dimension_is_split_once<said<s>>();
    else return size_divides<said<s>>();
  }
}

template <bool Fits, class Dims, class Mesh, class... P>
struct canonical {
  using at = placing<Dims, Mesh, P...>;
  using type = partitioned<typename Dims::template canonical<Dims::stands_canonically()>::type, Mesh,
                           shorten<at::placed.placement.count>(at::placed.placement)>;
};
// A base says it: nvcc takes nothing from a class that fails itself.
template <class Dims, class Mesh, class... P>
struct misplaced {
  static_assert(require_partition<Dims, Mesh, P...>());
};
template <class Dims, class Mesh, class... P>
struct canonical<false, Dims, Mesh, P...> : misplaced<Dims, Mesh, P...> {
  using type = refused;
};

}  // namespace detail

/// A tensor with these dimensions, partitioned over a mesh by `split<...>` and `partial<...>`; what they do not name is
/// replicated. The same meaning is always the same type. What cannot be is said once, and is `refused` from then on.
template <class Dims, class Mesh, class... P>
using sharded = typename detail::canonical<detail::placing<Dims, Mesh, P...>::placed.fits, Dims, Mesh, P...>::type;

}  // namespace cfp
