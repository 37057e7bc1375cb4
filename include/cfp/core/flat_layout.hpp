// Where tensors lie one behind another in one buffer, or why they cannot.
#pragma once

#include <cfp/core/steps.hpp>

namespace cfp::inline v0_1::detail {

// One line of a buffer: a tensor as it is held.
struct flat_part {
  std::string_view name;
  const dimensions* shape = nullptr;
  const partition* held = nullptr;
  const mesh_shape* mesh = nullptr;
  long element_bytes = 4;
  unsigned long element = 0;  // which type
};

template <int Count>
struct flat_layout {
  long elements = 0, padded = 0, share = 0;
  list<long, Count> offsets;
  sentence why;  // it cannot be
};

template <int Count>
constexpr flat_layout<Count> lay_out(std::string_view buffer, std::string_view axis,
                                     const list<flat_part, Count>& parts, long multiple) {
  flat_layout<Count> out;
  const flat_part& first = parts[0];
  const mesh_shape& mesh = *first.mesh;
  const int a = mesh.find(axis);
  const auto fail = [&](const flat_part& p, const auto&... words) {
    if (out.why.empty()) say(out.why, buffer, ": ", p.name, words...);
  };
  if (a < 0) say(out.why, buffer, ": the mesh has no axis '", axis, "' to share it over");
  for (int i = 0; i < parts.size() && out.why.empty(); ++i) {
    const flat_part& p = parts[i];
    if (!(*p.mesh == mesh)) fail(p, " is held on another mesh than ", first.name);
    else if (!p.shape->known()) fail(p, " has a size that only run time knows");
    else if (p.element != first.element && p.element_bytes == first.element_bytes)
      fail(p, " has elements of another type than ", first.name);
    else if (p.element_bytes != first.element_bytes)
      fail(p, " has elements of ", p.element_bytes, " bytes, ", first.name, " of ", first.element_bytes);
    else if (p.held->on(a).kind != placement::replicate)
      fail(p, " is '", describe(*p.held, p.shape->parts, mesh).view(), "': what is shared over '", axis,
           "' must be whole along it before");
    else if (p.held->is_partial())
      fail(p, " holds parts of a sum: '", describe(*p.held, p.shape->parts, mesh).view(), "'");
    for (int j = 0; j < i; ++j)
      if (same(parts[j].name, p.name)) fail(p, " stands twice");
    if (!out.why.empty()) break;
    out.offsets.push(out.elements);
    out.elements += elements(local_shape(*p.held, p.shape->sizes, mesh));
  }
  if (!out.why.empty()) return out;
  const long unit = mesh.size(a) * multiple;
  out.padded = (out.elements + unit - 1) / unit * unit;
  out.share = out.padded / mesh.size(a);
  return out;
}

template <int Count>
constexpr long offset_of(const flat_layout<Count>& layout, const list<flat_part, Count>& parts,
                         const flat_part& wanted) {
  for (int i = 0; i < layout.offsets.size(); ++i)
    if (same(parts[i].name, wanted.name) && *parts[i].held == *wanted.held &&
        parts[i].shape->sizes == wanted.shape->sizes)
      return layout.offsets[i];
  return -1;
}

template <class Held>
constexpr flat_part part_of() {
  return {Held::name,          &Held::dims_type::value, &Held::held, &Held::mesh_type::shape,
          Held::element_bytes, element_of_named<Held>()};
}

template <class First, class...>
struct first_of {
  using mesh_type = typename First::mesh_type;
  using element_type = typename First::element_type;
};

template <lit Name, lit Axis, long Multiple, class... Held>
struct laid_out {
  using first = first_of<Held...>;
  template <class F>
  static constexpr void each(F& f) {
    (f.template operator()<Held>(), ...);
  }
  static constexpr std::string_view name = Name.view(), axis = Axis.view();
  static constexpr list<flat_part, sizeof...(Held)> parts = [] {
    list<flat_part, sizeof...(Held)> out;
    (out.push(part_of<Held>()), ...);
    return out;
  }();
  static constexpr auto value = lay_out(name, axis, parts, Multiple);
};

}  // namespace cfp::detail
