// Questions the compiler answers about operators on partitioned tensors, usable in static_assert, requires and
// if constexpr. `Op` is an operator object, T the types of its operands (see sharded.hpp).
//
//   communication_free<Op, T...>   bool: no device needs what another one holds
//   result_t<Op, T...>             the result's type; does not compile where communication would be owed, and says why
//   result_at_t<Op, I, T...>       the same of an operator with several results
//   why<Op, T...>                  the sentence, empty where nothing is wrong
//   owed<From, To>                 the conversion between two partitions of one tensor: steps, and bytes per device
//   complete_t<T>                  T with its partial sums completed; owed<T, complete_t<T>> is what that takes
#pragma once

#include <cfp/core/check.hpp>
#include <cfp/core/infer.hpp>
#include <cfp/core/sharded.hpp>

#include <type_traits>
#include <utility>

namespace cfp::inline v0_1 {

namespace detail {

template <class Op>
constexpr operator_view view_of() {
  return {Op::named ? Op::label() : std::string_view{}, Op::rule_source, Op::linear};
}

template <class First, class...>
constexpr const mesh_shape& mesh_of = First::mesh_type::shape;

template <class... T>
constexpr list<operand_view, max_operands> views() {
  return {{{&T::dims_type::value, &T::held}...}, static_cast<int>(sizeof...(T))};
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
  constexpr int dots = outline_of<Op>.ellipsis({{T::dims_type::value.written()...}, sizeof...(T)});
  return infer(view_of<Op>(), outline_of<Op>, rule_of<Op, dots>, views<T...>(), {{&T::mesh_type::shape...}, sizeof...(T)});
}

// Only what later questions need is kept: constants cost the compiler memory.
struct verdict {
  binding_problem::kind_t binding = binding_problem::nothing;
  conflict::kind_t clash = conflict::nothing;
  int operand = -1;
  long given = 0, wanted = 0;
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

constexpr verdict judge_plain(const rule& r, linearity lin, const list<operand_view, max_operands>& operands, const mesh_shape& mesh) {
  verdict out;
  factor_sizes sizes;
  sizes.count = r.factors.size();
  list<const partition*, max_operands> held;
  for (int i = 0; i < operands.size(); ++i) {
    const dimensions& d = *operands[i].shape;
    for (int k = 0; k < d.rank(); ++k) {
      long& have = sizes[r.operands[i].factors[k]];
      if (have != 0 && d.sizes[k] != 0 && have != d.sizes[k]) out = {binding_problem::sizes, conflict::nothing, i, d.sizes[k], have, true};
      if (have == 0) have = d.sizes[k];
    }
    held.push(operands[i].held);
  }
  assignment unused;
  if (out.binding == binding_problem::nothing) out.clash = settle(r, lin, held, mesh, unused).kind;
  return out;
}

constexpr verdict judge(const operator_view& op, const rule_outline& o, const rule& r, const list<operand_view, max_operands>& operands,
                        const list<const mesh_shape*, max_operands>& meshes) {
  const inference it = infer(op, o, r, operands, meshes);
  const binding_problem& b = it.bound.problem;
  return {b.kind, it.flow.why.kind, b.operand, b.given, b.wanted, it.same_mesh};
}

constexpr verdict judge_quickly(const operator_view& op, const rule_outline& o, const rule& r, const list<operand_view, max_operands>& operands,
                                const list<const mesh_shape*, max_operands>& meshes) {
  for (const mesh_shape* m : meshes)
    if (m != meshes[0]) return judge(op, o, r, operands, meshes);
  if (fits(o, operands) || !plain(r, operands)) return judge(op, o, r, operands, meshes);
  return judge_plain(r, op.linear, operands, *meshes[0]);
}

// What is no list of one to eight partitioned tensors.
template <class Op, class... T>
struct question {
  static constexpr bool tensors = (partitioned_tensor<T> && ...);
  static_assert(operands_are_partitioned_tensors<tensors>::require());
  static constexpr verdict answer{binding_problem::operand_count, conflict::nothing, -1, sizeof...(T), outline_of<Op>.written.size()};
};
template <class Op, partitioned_tensor... T>
  requires(sizeof...(T) > 0 && sizeof...(T) <= max_operands)
struct question<Op, T...> {
  static constexpr int dots = outline_of<Op>.ellipsis({{T::dims_type::value.written()...}, sizeof...(T)});
  static constexpr verdict answer = judge_quickly(view_of<Op>(), outline_of<Op>, rule_of<Op, dots>, {{{&T::dims_type::value, &T::held}...}, sizeof...(T)},
                                                  {{&T::mesh_type::shape...}, sizeof...(T)});
};

template <class Op, class... T>
struct refusal {
  static constexpr sentence text = [] {
    if constexpr (sizeof...(T) == 0 || sizeof...(T) > max_operands) {
      inference it;
      it.bound.problem = {binding_problem::operand_count, -1, -1, sizeof...(T), outline_of<Op>.written.size(), {}, nullptr};
      return words(it, view_of<Op>(), {}, mesh_shape{});
    } else {
      return words(inferred<Op, T...>(), view_of<Op>(), views<T...>(), mesh_of<T...>);
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
      say(out.problem, view_of<Op>().label.empty() ? Op::rule_source : view_of<Op>().label, ": two dimensions of the result would be named '", d.parts[twice],
          "'; rename it in one of the operands");
    }
    out.placement = describe(it.flow.results[Result], d.parts, mesh_of<T...>);
    return out;
  }();
};

template <class Answered, class Mesh, class Indices>
struct result_type;
template <class Answered, class Mesh, int... Index>
struct result_type<Answered, Mesh, std::integer_sequence<int, Index...>> {
  using type = partitioned<dims<shorten<Answered::texts.dim[Index].count>(Answered::texts.dim[Index])...>, Mesh, shorten<Answered::texts.placement.count>(Answered::texts.placement)>;
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
    if constexpr (!v.same_mesh) return operands_share_one_mesh<false, s>::require();
    else if constexpr (v.binding == b::unreadable) return rule_can_be_read<static_cast<int>(v.given), s>::require();
    else if constexpr (v.binding == b::operand_count) return operands_as_many_as_the_rule_has<static_cast<int>(v.given), static_cast<int>(v.wanted), s>::require();
    else if constexpr (v.binding == b::rank) return operand_has_the_dimensions_of_the_rule<v.operand, static_cast<int>(v.given), static_cast<int>(v.wanted), s>::require();
    else if constexpr (v.binding == b::parts) return compound_dimension_fits_the_rule<v.operand < 0 ? 0 : v.operand, s>::require();
    else if constexpr (v.binding == b::sizes) return sizes_agree<v.given, v.wanted, s>::require();
    else if constexpr (v.clash == c::disagree) return operands_hold_a_common_factor_alike<false, s>::require();
    else if constexpr (v.clash == c::whole_split) return whole_factor_is_not_split<false, s>::require();
    else if constexpr (v.clash == c::halo) return neighbours_owe_no_halo<false, s>::require();
    else if constexpr (v.clash == c::carry) return scanned_factor_is_not_split<false, s>::require();
    else if constexpr (v.clash == c::partial_operand) return partial_sum_is_completed_first<false, s>::require();
    else return axes_split_in_one_order<false, s>::require();
  }
  return true;
}

template <bool Free, class Op, int Result, class... T>
struct checked_result {
  static_assert(require<Op, T...>());
  using type = checked_result;  // so that one mistake is one error
};
template <class Op, int Result, class... T>
struct checked_result<true, Op, Result, T...> {
  using answer = answered<Op, Result, T...>;
  static_assert(dimensions_have_different_names<answer::texts.problem.empty(), shorten<answer::texts.problem.count>(answer::texts.problem)>::require());
  using type = typename result_type<answer, typename mesh_type_of<T...>::type, std::make_integer_sequence<int, answer::texts.rank>>::type;
};

}  // namespace detail

/// Whether every device can do its share of `Op` with what it holds.
template <auto Op, class... T>
inline constexpr bool communication_free = detail::question<std::remove_cvref_t<decltype(Op)>, T...>::answer.free();

/// Why not, in words, with the cheapest change that makes it so.
template <auto Op, class... T>
inline constexpr std::string_view why = detail::refusal<std::remove_cvref_t<decltype(Op)>, T...>::text.view();

/// The type of result number `Index` of an operator with several.
template <auto Op, int Index, class... T>
using result_at_t = typename detail::checked_result<communication_free<Op, T...>, std::remove_cvref_t<decltype(Op)>, Index, T...>::type;

/// The type of the result (the first, of an operator with several).
template <auto Op, class... T>
using result_t = result_at_t<Op, 0, T...>;

}  // namespace cfp
