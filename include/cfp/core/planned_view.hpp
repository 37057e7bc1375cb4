// Tensors of a plan, as what checks it sees them.
#pragma once

#include <cfp/core/named.hpp>

namespace cfp::inline v0_1 {

namespace detail {

struct planned_view {
  std::string_view name;
  const mesh_shape* mesh = nullptr;
  const dimensions* shape = nullptr;
  const partition* held = nullptr;
};

template <class Held>
constexpr planned_view planned_view_of() {
  return {Held::name, &Held::type::mesh_type::shape, &Held::type::dims_type::value, &Held::type::held};
}

}  // namespace detail

/// Tensors of a plan, in order.
template <class... Held>
struct tensors {
  template <class View, int Capacity>
  static constexpr list<View, Capacity> views() {
    static_assert(sizeof...(Held) <= Capacity, "an operator has at most eight operands and four results");
    return {{View{Held::name, &Held::type::mesh_type::shape, &Held::type::dims_type::value, &Held::type::held}...},
            sizeof...(Held)};
  }
};

}  // namespace cfp
