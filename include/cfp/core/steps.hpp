// The way from one partition of a tensor to another: the cheapest steps, collectives and what each device does alone.
//
//   steps<From, To>   as a value: what, over which axes, which dimension, shapes, bytes
//   complete_t<T>     T with its partial sums completed; steps<T> is the way to it
#pragma once

#include <cfp/core/named.hpp>
#include <cfp/core/shape_error.hpp>
#include <cfp/core/tensor_step.hpp>

namespace cfp::inline v0_1 {

/// Bytes that a network carries in the time a collective takes to start (10 us at 25 GB/s). Where a tensor is small,
/// steps are fewer rather than shorter.
inline constexpr long bytes_of_a_call = 1 << 18;

namespace detail {

struct tensor_view {
  std::string_view name;
  const dimensions& shape;
  const partition& held;
  const mesh_shape& mesh;
  unsigned long element = 0;  // which type, where it has a name
  long element_bytes = 4;

  constexpr void say_to(sentence& s) const {
    if (!name.empty()) say(s, name);
    else say_dimensions(s, shape);
  }
};
template <class T>
constexpr tensor_view view_as_tensor() {
  return {name_of<T>(),        T::dims_type::value,   T::held,
          T::mesh_type::shape, element_of_named<T>(), element_bytes_of<T>()};
}

// Of the same names, but for those that rules lent, and sizes.
constexpr bool alike(const dimensions& a, const dimensions& b) {
  if (a.rank() != b.rank() || !(a.sizes == b.sizes) || !(a.group == b.group)) return false;
  for (int i = 0; i < a.rank(); ++i)
    if (!a.lent[i] && !b.lent[i] && !same(a.parts[i], b.parts[i])) return false;
  return true;
}

struct way_found {
  conversion steps;
  sentence why;  // there is none
};

// Why there is no way at all: another tensor, another mesh, other elements.
constexpr sentence other_tensor(const tensor_view& from, const tensor_view& to) {
  sentence s;
  const bool dims = alike(from.shape, to.shape), meshes = from.mesh == to.mesh;
  const bool elements = from.element == 0 || to.element == 0 || from.element == to.element;
  if (dims && meshes && elements) return s;
  from.say_to(s);
  say(s, ": converted to another ", !meshes ? "mesh, from (" : !dims ? "tensor, " : "type of elements, ");
  if (!meshes) say_axes(s, from.mesh), say(s, ") to ("), say_axes(s, to.mesh), say(s, ")");
  else if (!dims) say_dimensions(s, from.shape), say(s, " to "), say_dimensions(s, to.shape);
  else say(s, from.element_bytes, " bytes to ", to.element_bytes, "; cast before or after");
  return s;
}

constexpr way_found find_way(const tensor_view& from, const tensor_view& to, long element_bytes) {
  way_found out;
  out.why = other_tensor(from, to);
  if (!out.why.empty()) return out;
  // Where a size is left to run time, any that divides does, as long as bytes outweigh calls.
  extents shape = from.shape.sizes;
  for (long& e : shape)
    if (e == 0) e = 1024 * from.mesh.devices();
  out.steps = convert(from.held, to.held, shape, element_bytes, from.mesh, {true, bytes_of_a_call});
  if (out.steps.possible) return out;
  from.say_to(out.why);
  say(out.why, ": no steps lead from '", describe(from.held, from.shape.parts, from.mesh).view(), "' to '",
      describe(to.held, to.shape.parts, to.mesh).view(),
      "': nothing makes parts of a maximum or minimum, and no other axis splits what its devices do not divide");
  return out;
}

template <class From, class To>
struct way {
  static constexpr long element_bytes = element_bytes_of<From>();
  static constexpr way_found found = find_way(view_as_tensor<From>(), view_as_tensor<To>(), element_bytes);
  static constexpr step_list at(const extents& sizes) {
    return tell_steps(found.steps, From::held, From::dims_type::value, sizes, From::mesh_type::shape, element_bytes);
  }
};

// Steps between two partitions, as a value that knows them.
template <class From, class To>
struct steps_between : step_list {
  constexpr steps_between() : step_list(way<From, To>::at(From::dims_type::value.sizes)) {}
  /// The same steps of a tensor of these sizes, which only run time knows (one per dimension, or part of a compound
  /// one). Throws cfp::error where they do not divide.
  constexpr step_list at(const extents& sizes) const {
    for (const sentence& s : {From::problem(sizes), To::problem(sizes)})
      if (!s.empty()) throw shape_error(s);
    return way<From, To>::at(sizes);
  }
};

// Of a tensor that was refused: anything.
struct refused_step {
  anything kind, axes, devices, dim, to, combine, before, after, at, to_at, whole;
  anything communicates, bytes, count, color, key, runs, run, contiguous;
};
struct refused_steps {
  anything size, none, local, count, bytes, at, element_bytes;
  constexpr refused_step operator[](int) const { return {}; }
  constexpr const refused_step* begin() const { return nullptr; }
  constexpr const refused_step* end() const { return nullptr; }
};
template <class Way>
consteval bool require_way() {
  return partition_can_be_converted<said<shorten<Way::found.why.count>(Way::found.why)>>();
}
template <class Way>
struct no_way : refused_steps {
  static_assert(require_way<Way>());
};
template <class From, class To>
constexpr auto steps_or_refused() {
  if constexpr (is_refused<From> || is_refused<To>) return refused_steps{};
  else if constexpr (way<From, To>::found.why.empty()) return steps_between<From, To>{};
  else return no_way<way<From, To>>{};
}

template <class T>
struct completed {
  static constexpr text<255> placement = [] {
    partition p = T::held;
    for (partition::debt& d : p.partial) d = {};
    return describe(p, T::dims_type::value.parts, T::mesh_type::shape);
  }();
  using type = typename named_as<
      T, partitioned<typename T::dims_type, typename T::mesh_type, shorten<placement.count>(placement)>>::type;
};
template <is_refused T>
struct completed<T> {
  using type = refused;
};

}  // namespace detail

/// `T` with its partial sums completed.
template <class T>
using complete_t = typename detail::completed<T>::type;

/// The steps that turn one partition of a tensor into another: those that take least by bytes and calls.
template <class From, class To = complete_t<From>>
inline constexpr auto steps = detail::steps_or_refused<From, To>();

}  // namespace cfp
