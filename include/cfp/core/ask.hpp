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

#include <cfp/core/question.hpp>

#include <type_traits>
#include <utility>

namespace cfp::inline v0_1 {

namespace detail {

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

enum class outcome { asked, silent, wrong };
template <class Op, class... T>
constexpr outcome outcome_of = nothing_to_ask<Op, T...> ? outcome::silent
                               : !free<Op, T...>()      ? outcome::wrong
                               : all_tensors<T...>      ? outcome::asked
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
