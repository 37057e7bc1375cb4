// What follows from a mistake that was said already: a type that goes through every later question without a further
// word, so that one mistake is one sentence. It takes the place of a tensor whose partition cannot be.
#pragma once

#include <cfp/core/text.hpp>

#include <type_traits>

namespace cfp::inline v0_1 {

/// What a refused tensor answers: any number, equal to all there is, empty and not.
struct anything {
  template <class T>
    requires std::is_default_constructible_v<T>
  constexpr operator T() const {
    if constexpr (std::is_arithmetic_v<T>) return T(1);
    else return T{};
  }
  constexpr bool operator!() const { return true; }
  constexpr anything operator-() const { return {}; }
  template <class... T>
  constexpr anything operator()(const T&...) const {
    return {};
  }
  template <class T>
  constexpr anything operator[](const T&) const {
    return {};
  }
};

template <class A, class B>
concept with_anything = std::is_same_v<A, anything> || std::is_same_v<B, anything>;

#define CFP_OF_ANYTHING(returned, symbol) \
  template <class A, class B>             \
    requires with_anything<A, B>          \
  constexpr returned operator symbol(const A&, const B&) { return returned(anything{}); }
CFP_OF_ANYTHING(bool, ==)
CFP_OF_ANYTHING(bool, !=)
CFP_OF_ANYTHING(bool, <)
CFP_OF_ANYTHING(bool, >)
CFP_OF_ANYTHING(bool, <=)
CFP_OF_ANYTHING(bool, >=)
CFP_OF_ANYTHING(anything, +)
CFP_OF_ANYTHING(anything, -)
CFP_OF_ANYTHING(anything, *)
CFP_OF_ANYTHING(anything, /)
CFP_OF_ANYTHING(anything, %)
#undef CFP_OF_ANYTHING

/// Its dimensions, its mesh and its partition.
struct anything_of_a_tensor {
  anything parts, sizes, group, lent, readable, rank, written, find, count, first, known;  // dimensions
  anything axes, size, devices, coordinate;                                                // mesh_shape
  anything dims, partial, on, dim_of, is_partial;                                          // partition
};

/// A tensor whose partition cannot be.
struct refused {
  using dims_type = refused;
  using mesh_type = refused;
  using type = refused;
  static constexpr anything_of_a_tensor value{}, shape{}, held{};
  static constexpr anything sized{};
  static constexpr std::string_view name{};
  template <class... T>
  static constexpr anything local(const T&...) {
    return {};
  }
  template <class... T>
  static constexpr anything first(const T&...) {
    return {};
  }
  template <class... T>
  static constexpr sentence problem(const T&...) {
    return {};
  }
};

template <class T>
concept is_refused = std::is_base_of_v<refused, T>;

}  // namespace cfp
