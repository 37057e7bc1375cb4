// Kernels of a user's own operators, by their types: each functor and what its derivatives need.
#pragma once

#include <cfp/backend/host/map_kernel.hpp>
#include <cfp/backend/host/stored_narrow.hpp>
#include <cfp/backend/own_kernels.hpp>

namespace cfp::inline v0_1 {

namespace detail {

template <class Op>
own_kernel own_kernel_of() {
  constexpr host::kernel_function in_float = &host::run_map<Op, float>;
  return {&info<Op>, &host::run_map<Op, double>, in_float, host::stored_as<bf16, in_float, Op::index_operand>()};
}
template <class Op, std::size_t... I>
void add_own(own_kernels& out, std::index_sequence<I...>) {
  static_assert(defined<Op>());
  if constexpr (functor_fits<Op>()) out.push_back(own_kernel_of<Op>());
  if constexpr (functor_fits<Op>() && has_slopes<Op>) {
    const auto slope_of = [&]<std::size_t Operand>() {
      if constexpr (static_cast<int>(Operand) != Op::index_operand)
        out.push_back(own_kernel_of<slope<Op, static_cast<int>(Operand)>>());
    };
    (slope_of.template operator()<I>(), ...);
  }
}

}  // namespace detail

/// `kernels_of<swiglu_t, my_norm_t>()`. Contractions need none.
template <class... Op>
own_kernels kernels_of() {
  own_kernels out;
  (detail::add_own<Op>(out, std::make_index_sequence<static_cast<std::size_t>(bare_rule<Op>.operands.size())>{}), ...);
  return out;
}

}  // namespace cfp
