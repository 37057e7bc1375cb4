// Operators of a user's own, which are in no catalogue.
#pragma once

#include <cfp/op/op.hpp>

namespace own_operators {

inline constexpr struct bent_t : cfp::op<"... -> ...", bent_t> {
  template <class T>
  CFP_HOST_DEVICE static T apply(T x) {
    return x + x * x;
  }
} bent;

inline constexpr struct turned_t : cfp::op<"... -> ...", turned_t> {
  template <class T>
  CFP_HOST_DEVICE static T apply(T x) {
    return x - x * x;
  }
} turned;

/// One template, many operators. Its arguments may be as long as they like.
template <int By, class... Tag>
struct scaled_by_t : cfp::op<"... -> ...", scaled_by_t<By, Tag...>> {
  template <class T>
  CFP_HOST_DEVICE static T apply(T x) {
    return T(By) * x;
  }
};

}  // namespace own_operators
