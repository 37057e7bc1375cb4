// A question and its answer: whether an operator is free of communication, and the check that says why it is not.
#pragma once

#include <cfp/core/asked_operands.hpp>
#include <cfp/core/check.hpp>
#include <cfp/core/refusal.hpp>
#include <cfp/core/verdict.hpp>

namespace cfp::inline v0_1::detail {

template <class Op, class... T>
inline constexpr sentence no_tensor = [] {
  sentence s;
  long at = -1, first = -1;
  ((++at, first = first < 0 && !partitioned_tensor<T> ? at : first), ...);
  say(s, Op::named ? Op::label() : Op::rule_source, ": operand ", first, " is no partitioned tensor");
  return s;
}();

// What is no list of one to eight partitioned tensors.
template <class Op, class... T>
consteval bool require_tensors() {
  if constexpr ((partitioned_tensor<T> && ...)) return true;
  else return operands_are_partitioned_tensors<said<shorten<no_tensor<Op, T...>.count>(no_tensor<Op, T...>)>>();
}
template <class Op, class... T>
struct question {
  static_assert(require_tensors<Op, T...>());
  static constexpr verdict answer{(partitioned_tensor<T> && ...) ? binding_problem::operand_count
                                                                 : binding_problem::nothing};
};
template <class Op, partitioned_tensor... T>
  requires(sizeof...(T) > 0 && sizeof...(T) <= max_operands)
struct question<Op, T...> {
  static constexpr asked_operands operands = asked<T...>();
  static constexpr int dots = outline_of<Op>.ellipsis(operands.ranks());
  static constexpr verdict answer =
      judge_quickly(view_of<Op>(), outline_of<Op>, rule_of<Op, dots>, operands.views, operands.meshes);
};

// Whether something was said already: of an operand, or of the operator's rule.
template <class Op, class... T>
constexpr bool nothing_to_ask = (is_refused<T> || ...) || static_cast<bool>(outline_of<Op>.problem);

template <class... T>
constexpr bool all_tensors = (partitioned_tensor<T> && ...);

template <class Op, class... T>
constexpr bool free() {
  if constexpr (nothing_to_ask<Op, T...>) return true;
  else return question<Op, T...>::answer.free();
}

template <class Op, class... T>
struct refusal {
  static constexpr sentence text = [] {
    if constexpr (nothing_to_ask<Op, T...>) {
      return sentence{};
    } else if constexpr (sizeof...(T) == 0 || sizeof...(T) > max_operands) {
      inference it;
      it.bound.problem = {binding_problem::operand_count, -1, -1,     sizeof...(T),
                          outline_of<Op>.written.size(),  {}, nullptr};
      return words(it, view_of<Op>(), list<operand_view, max_operands>{}, list<const mesh_shape*, max_operands>{});
    } else {
      const asked_operands operands = asked_by_name<T...>();
      return words(inferred<Op, T...>(), view_of<Op>(), operands.views, operands.meshes);
    }
  }();
};

// The first check that fails says its sentence; where none does, results follow.
template <class Op, class... T>
consteval bool require() {
  constexpr verdict v = question<Op, T...>::answer;
  if constexpr (!v.free()) {
    constexpr auto s = shorten<refusal<Op, T...>::text.count>(refusal<Op, T...>::text);
    using b = binding_problem;
    using c = conflict;
    if constexpr (!v.same_mesh) return operands_share_one_mesh<said<s>>();
    else if constexpr (v.binding == b::operand_count) return operands_as_many_as_the_rule_has<said<s>>();
    else if constexpr (v.binding == b::rank) return operand_has_the_dimensions_of_the_rule<said<s>>();
    else if constexpr (v.binding == b::parts) return compound_dimension_fits_the_rule<said<s>>();
    else if constexpr (v.binding == b::order) return compound_dimension_is_in_the_order_of_the_rule<said<s>>();
    else if constexpr (v.binding == b::names) return operands_call_a_common_factor_alike<said<s>>();
    else if constexpr (v.binding == b::sizes) return sizes_agree<said<s>>();
    else if constexpr (v.binding == b::indivisible) return factor_divides<said<s>>();
    else if constexpr (v.clash == c::disagree) return operands_hold_a_common_factor_alike<said<s>>();
    else if constexpr (v.clash == c::whole_split) return whole_factor_is_not_split<said<s>>();
    else if constexpr (v.clash == c::halo) return neighbours_owe_no_halo<said<s>>();
    else if constexpr (v.clash == c::carry) return scanned_factor_is_not_split<said<s>>();
    else if constexpr (v.clash == c::partial_operand) return partial_sum_is_completed_first<said<s>>();
    else return axes_split_in_one_order<said<s>>();
  }
  return true;
}

}  // namespace cfp::detail
