// What numbers are computed in, and sums of many stored as, whatever each is stored as.
#pragma once

namespace cfp::inline v0_1 {

/// A type made for storing numbers says which type computes with them.
template <class T>
struct computed_in {
  using type = T;
};

/// The type in which numbers stored as `T` are computed, and sums of many are stored: float at least.
template <class T>
using wide_t = typename computed_in<T>::type;

/// Numbers that are stored in fewer bits than they are computed in.
template <class T>
inline constexpr bool is_narrow = false;
template <class T>
  requires(sizeof(T) < sizeof(wide_t<T>))
inline constexpr bool is_narrow<T> = true;

}  // namespace cfp
