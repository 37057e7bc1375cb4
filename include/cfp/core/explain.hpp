// Why a tensor's partition cannot be, in words; the compiler and the program say the same sentence.
#pragma once

#include <cfp/core/dims.hpp>

namespace cfp::inline v0_1 {

/// What is wrong with the partition of one tensor.
struct sharding_problem {
  enum kind_t : std::uint8_t {
    nothing,
    unknown_dimension,
    unknown_axis,
    axis_twice,
    dimension_twice,
    not_divisible,
  } kind = nothing;
  name subject;               ///< the dimension or axis
  long size = 0, pieces = 0;  ///< not_divisible: elements, and devices to divide them among

  constexpr explicit operator bool() const { return kind != nothing; }
};

namespace detail {

template <class Names>
constexpr void say_names(sentence& s, const Names& names) {
  for (int i = 0; i < names.size(); ++i)
    say(s, i == 0 ? "'" : i + 1 == names.size() ? " and '" : ", '", std::string_view(names[i]), "'");
}

constexpr void say_axes(sentence& s, const list<signed char, max_axes>& axes, const mesh_shape& m) {
  for (int i = 0; i < axes.size(); ++i)
    say(s, i == 0 ? "" : " ", m.axes[axes[i]].label.view(), "=", static_cast<long>(m.size(axes[i])));
}

constexpr void say_axes(sentence& s, const mesh_shape& m) {
  for (int a = 0; a < m.rank(); ++a) say(s, a ? " " : "", m.axes[a].label.view(), "=", static_cast<long>(m.size(a)));
}

constexpr void say_dimensions(sentence& s, const dimensions& d) {
  for (int i = 0; i < d.rank(); ++i) {
    say(s, i ? " " : "(", d.parts[i]);
    if (d.sizes[i] > 0) say(s, "=", d.sizes[i]);
  }
  say(s, ")");
}

/// Whether sizes (0: not known) divide among the devices that hold them.
constexpr sharding_problem size_problem(const dimensions& d, const partition& p, const mesh_shape& m,
                                        const extents& sizes) {
  for (int i = 0; i < d.rank(); ++i)
    if (const long n = pieces(p, i, m); sizes[i] % n != 0)
      return {sharding_problem::not_divisible, name(d.parts[i]), sizes[i], n};
  return {};
}

}  // namespace detail

constexpr sentence words(const sharding_problem& w, const dimensions& d, const partition& p, const mesh_shape& m) {
  sentence s;
  switch (w.kind) {
    case sharding_problem::unknown_dimension:
      say(s, "the tensor has no dimension '", w.subject.view(), "'; its dimensions are ");
      detail::say_names(s, d.parts);
      break;
    case sharding_problem::unknown_axis: {
      say(s, "the mesh has no axis '", w.subject.view(), "'; its axes are ");
      list<name, max_axes> axes;
      for (const mesh_axis& a : m.axes) axes.push(a.label);
      detail::say_names(s, axes);
      break;
    }
    case sharding_problem::axis_twice:
      say(s, "axis '", w.subject.view(), "' is used twice; an axis splits one dimension, or holds parts of one sum");
      break;
    case sharding_problem::dimension_twice:
      say(s, "dimension '", w.subject.view(),
          "' is split twice; write one split with all its axes, the major one first");
      break;
    case sharding_problem::not_divisible:
      say(s, "dimension '", w.subject.view(), "' has ", w.size, " elements, which ", w.pieces, " devices (");
      detail::say_axes(s, p.dims[d.find(w.subject.view())], m);
      say(s, ") do not divide; take a multiple of ", w.pieces, " or fewer devices");
      break;
    case sharding_problem::nothing: break;
  }
  return s;
}

/// "batch:data heads:model", dimensions in order, the major axis of each first; "partial:data"; "replicated".
template <int Capacity = 255, class Names>
constexpr text<Capacity> describe(const partition& p, const Names& dims, const mesh_shape& m) {
  text<Capacity> out;
  const auto item = [&](std::string_view what, int a) {
    if (!out.empty()) out.push(' ');
    out += what;
    out.push(':');
    out += m.axes[a].label.view();
  };
  for (int d = 0; d < p.rank(); ++d)
    for (signed char a : p.dims[d]) item(std::string_view(dims[d]), a);
  for (int a = 0; a < m.rank(); ++a)
    if (p.partial[a].owed)
      item(p.partial[a].combine == reduction::sum   ? "partial"
           : p.partial[a].combine == reduction::max ? "partial_max"
                                                    : "partial_min",
           a);
  if (out.empty()) out += "replicated";
  return out;
}

}  // namespace cfp
