// Questions the compiler answers about operators on partitioned tensors, usable in static_assert, requires and
// if constexpr. `Op` is an operator object, T the types of its operands (sharded.hpp, named.hpp), in the rule's order.
//
//   communication_free<Op, T...>   bool: no device needs what another one holds
//   result_t<Op, T...>             the result's type; does not compile where communication would be owed, and says why
//   result_at_t<Op, I, T...>       the same of an operator with several results
//   why<Op, T...>                  the sentence, empty where nothing is wrong
//
// A question about a tensor that was refused is answered by silence: free, and refused.
#pragma once

#include <cfp/core/check.hpp>
#include <cfp/core/named.hpp>
#include <cfp/core/refusal.hpp>

#include <type_traits>
#include <utility>

namespace cfp::inline v0_1 {

namespace detail {

template <class Op>
constexpr operator_view view_of() {
  return {Op::named ? Op::label() : std::string_view{}, Op::rule_source, Op::linear};
}

// The operands of a question. Lists are filled one by one: nvcc loses packs inside of nested braces.
struct asked_operands {
  list<operand_view, max_operands> views;
  list<const mesh_shape*, max_operands> meshes;

  constexpr list<int, max_operands> ranks() const {
    list<int, max_operands> out;
    for (const operand_view& v : views) out.push(v.shape->written());
    return out;
  }
  template <class T>
  constexpr void name(int at) {
    views[at].label = name_of<T>();
    views[at].element_bytes = element_bytes_of<T>();
  }
};
template <class... T>
constexpr asked_operands asked() {
  asked_operands out;
  ((out.views.push({&T::dims_type::value, &T::held}), out.meshes.push(&T::mesh_type::shape)), ...);
  return out;
}
// The same with what sentences say of them.
template <class... T>
constexpr asked_operands asked_by_name() {
  asked_operands out = asked<T...>();
  int at = 0;
  (out.template name<T>(at++), ...);
  return out;
}

template <class T>
concept partitioned_tensor = requires { typename T::dims_type; typename T::mesh_type; };

// Read once per operator, and once per number of dimensions "..." stands for.
template <class Op>
inline constexpr rule_outline outline_of = outline(Op::rule_source);
template <class Op, int Dots>
inline constexpr rule rule_of = outline_of<Op>.problem ? rule{} : parse(Op::rule_source, Dots);

template <class Op, class... T>
constexpr inference inferred() {
  constexpr int dots = outline_of<Op>.ellipsis(asked<T...>().ranks());
  const asked_operands operands = asked<T...>();
  return infer(view_of<Op>(), outline_of<Op>, rule_of<Op, dots>, operands.views, operands.meshes);
}

// Only what later questions need is kept: constants cost the compiler memory.
struct verdict {
  binding_problem::kind_t binding = binding_problem::nothing;
  conflict::kind_t clash = conflict::nothing;
  bool same_mesh = true;
  constexpr bool free() const { return same_mesh && binding == binding_problem::nothing && clash == conflict::nothing; }
};

// Where no dimension is compound the rule needs no binding: its factors are the operands' dimensions.
constexpr bool plain(const rule& r, const list<operand_view, max_operands>& operands) {
  for (const operand_view& v : operands)
    if (v.shape->written() != v.shape->rank()) return false;
  for (const pattern& p : r.operands)
    if (!p.group.empty() && p.group.back() + 1 != p.group.size()) return false;
  for (const factor& f : r.factors)
    if (f.window >= 0) return false;
  return true;
}

constexpr verdict judge_plain(const rule& r, linearity lin, const list<operand_view, max_operands>& operands,
                              const mesh_shape& mesh) {
  std::string_view labels[max_factors]{};
  bool lent[max_factors]{};
  long sizes[max_factors]{};
  factor_sources from;
  list<const partition*, max_operands> held;
  for (int i = 0; i < operands.size(); ++i) {
    const dimensions& d = *operands[i].shape;
    for (int k = 0; k < d.rank(); ++k) {
      const int f = r.operands[i].factors[k];
      if (const binding_problem b = from.take(d, k, i, f, labels[f], lent[f], sizes[f])) return {b.kind};
    }
    held.push(operands[i].held);
  }
  assignment unused;
  return {binding_problem::nothing, settle(r, lin, held, mesh, unused).kind};
}

constexpr verdict judge(const operator_view& op, const rule_outline& o, const rule& r,
                        const list<operand_view, max_operands>& operands,
                        const list<const mesh_shape*, max_operands>& meshes) {
  const inference it = infer(op, o, r, operands, meshes);
  return {it.bound.problem.kind, it.flow.why.kind, it.same_mesh};
}

constexpr verdict judge_quickly(const operator_view& op, const rule_outline& o, const rule& r,
                                const list<operand_view, max_operands>& operands,
                                const list<const mesh_shape*, max_operands>& meshes) {
  for (const mesh_shape* m : meshes)
    if (m != meshes[0]) return judge(op, o, r, operands, meshes);
  if (fits(o, operands) || !plain(r, operands)) return judge(op, o, r, operands, meshes);
  return judge_plain(r, op.linear, operands, *meshes[0]);
}

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

struct result_texts {
  text<159> dim[max_dims]{};
  text<255> placement;
  int rank = 0;
  sentence problem;  ///< two dimensions of one name
};

template <class Op, int Result, class... T>
struct answered {
  static constexpr result_texts texts = [] {
    const inference it = inferred<Op, T...>();
    const dimensions d = result_dimensions(it.bound, Result);
    result_texts out;
    out.rank = d.written();
    for (int i = 0; i < out.rank; ++i) write_dimension(d, i, out.dim[i]);
    if (!d.readable) {
      int twice = 0;
      while (d.find(d.parts[twice]) == twice && !d.parts[twice].empty()) ++twice;
      say(out.problem, view_of<Op>().label.empty() ? Op::rule_source : view_of<Op>().label,
          ": two dimensions of the result would be named '", d.parts[twice], "'; rename it in one of the operands");
    }
    out.placement = describe(it.flow.results[Result], d.parts, *asked<T...>().meshes[0]);
    return out;
  }();
};

template <class Answered, class Mesh, class Indices>
struct result_type;
template <class Answered, class Mesh, int... Index>
struct result_type<Answered, Mesh, std::integer_sequence<int, Index...>> {
  using type = partitioned<dims<shorten<Answered::texts.dim[Index].count>(Answered::texts.dim[Index])...>, Mesh,
                           shorten<Answered::texts.placement.count>(Answered::texts.placement)>;
};

template <class First, class...>
struct mesh_type_of {
  using type = typename First::mesh_type;
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

enum class outcome { asked, silent, wrong };
template <class Op, class... T>
constexpr outcome outcome_of = nothing_to_ask<Op, T...>  ? outcome::silent
                               : !free<Op, T...>()       ? outcome::wrong
                               : all_tensors<T...>       ? outcome::asked
                                                         : outcome::silent;

template <class Answered>
consteval bool require_names() {
  if constexpr (Answered::texts.problem.empty()) return true;
  else return dimensions_have_different_names<said<shorten<Answered::texts.problem.count>(Answered::texts.problem)>>();
}

template <outcome, class Op, int Result, class... T>
struct checked_result {
  using type = refused;
};
// Said once, whatever result is asked for.
template <class Op, class... T>
struct wrong : refused {
  static_assert(require<Op, T...>());
};
template <class Op, int Result, class... T>
struct checked_result<outcome::wrong, Op, Result, T...> : wrong<Op, T...> {
  using type = refused;
};
template <class Op, int Result, class... T>
struct checked_result<outcome::asked, Op, Result, T...> {
  using answer = answered<Op, Result, T...>;
  static_assert(require_names<answer>());
  using type = std::conditional_t<answer::texts.problem.empty(),
                                  typename result_type<answer, typename mesh_type_of<T...>::type,
                                                       std::make_integer_sequence<int, answer::texts.rank>>::type,
                                  refused>;
};

}  // namespace detail

/// Whether every device can do its share of `Op` with what it holds.
template <const auto& Op, class... T>
inline constexpr bool communication_free = detail::free<std::remove_cvref_t<decltype(Op)>, T...>();

/// Why not, in words, with the smallest change that makes it so.
template <const auto& Op, class... T>
inline constexpr std::string_view why = detail::refusal<std::remove_cvref_t<decltype(Op)>, T...>::text.view();

// `Op` becomes a type at once: handed on as a value, nvcc's host pass forgets what it called it.

/// The type of result number `Index` of an operator with several.
template <const auto& Op, int Index, class... T>
using result_at_t = typename detail::checked_result<detail::outcome_of<std::remove_cvref_t<decltype(Op)>, T...>,
                                                    std::remove_cvref_t<decltype(Op)>, Index, T...>::type;

/// The type of the result (the first, of an operator with several).
template <const auto& Op, class... T>
using result_t = typename detail::checked_result<detail::outcome_of<std::remove_cvref_t<decltype(Op)>, T...>,
                                                 std::remove_cvref_t<decltype(Op)>, 0, T...>::type;

}  // namespace cfp
