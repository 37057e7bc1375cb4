// Kernels of the functions that graphs from files are written in: a program that runs such graphs hands them to ranks.
#pragma once

#include <cfp/backend/host/kernels_of.hpp>
#include <cfp/op/elementary.hpp>

namespace cfp::inline v0_1 {

namespace detail {
template <class... Op>
own_kernels kernels_of_all(op_list<Op...>) {
  return kernels_of<Op...>();
}
}  // namespace detail

inline own_kernels elementary_kernels() { return detail::kernels_of_all(elementary::all{}); }

}  // namespace cfp
