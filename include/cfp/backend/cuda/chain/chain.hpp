// Chains: map operators that run in one kernel, and where each takes its operands from. A chain is a type:
//
//   using layer_norm_forward = chain<step<norm_sum_t, in<0>>, step<norm_square_t, in<0>, from<0>>,
//                                    step<layer_norm_t, in<0>, from<0>, from<1>, in<1>, in<2>>>;
//
// A step reduces if its operator does; its result is then one number. Results are rounded to what they are stored as
// before a later step takes them: a chain gives what its operators give one after another.
#pragma once

#include <cfp/core/list.hpp>
#include <cfp/op/catalogue.hpp>
#include <cfp/op/signature.hpp>

#include <tuple>

namespace cfp::inline v0_1::cuda {

inline constexpr int max_steps = 6;
inline constexpr int max_inputs = 8;

/// Where a step takes an operand from: an input of the chain, or the result of an earlier step.
template <int I>
struct in {
  static constexpr bool is_step = false;
  static constexpr int index = I;
};
template <int S>
struct from {
  static constexpr bool is_step = true;
  static constexpr int index = S;
};

/// An operator and its operands, but for one of indices that selects table positions.
template <class Op, bool Reduces, class... Sources>
struct basic_step {
  static_assert(sizeof...(Sources) == signature<Op>::operands - (signature<Op>::selects ? 1 : 0),
                "a step names a source for each operand");
  using op = Op;
  static constexpr bool reduces = Reduces;
  static constexpr bool gathers = false;  ///< sums all rows to one, in a chain whose other steps take them one by one
  static constexpr int operands = sizeof...(Sources);
  template <int K>
  using source = std::tuple_element_t<static_cast<std::size_t>(K), std::tuple<Sources...>>;
};
template <class Op, class... Sources>
using step = basic_step<Op, signature<Op>::reduces, Sources...>;
/// The same reduced, where the rule it stands with says so and not the operator's own.
template <class Op, class... Sources>
using reduced_step = basic_step<Op, true, Sources...>;
/// The sum of all rows, while other steps take them one by one.
template <class Op, class... Sources>
struct gathering_step : basic_step<Op, false, Sources...> {
  static constexpr bool gathers = true;
};

template <class... Steps>
struct chain {
  static constexpr int steps = sizeof...(Steps);
  static_assert(steps <= max_steps, "a chain has at most 6 steps");
  template <int S>
  using step = std::tuple_element_t<static_cast<std::size_t>(S), std::tuple<Steps...>>;
};

/// How a chain walks its elements.
enum class mapping { flat, rows, columns };

// A chain as a value: what finds chains in a program compares with.

struct chain_source {
  bool step = false;  ///< else an input
  int index = 0;
};
struct chain_step {
  const op_info* op = nullptr;
  bool reduces = false, gathers = false;
  list<chain_source, max_operands> sources;
  list<bool, max_operands> along;       ///< whether an operand changes along a row, or is one number for all of it
  list<bool, max_operands> lacks_rows;  ///< whether it is the same for all rows
};
struct chain_info {
  list<chain_step, max_steps> steps;
  int inputs = 0;

  /// Whether the value of a step needs an input, itself or through steps that are computed with it.
  constexpr bool reads(int s, int input) const {
    for (const chain_source& x : steps[s].sources)
      if (x.step ? !steps[x.index].reduces && reads(x.index, input) : x.index == input) return true;
    return false;
  }
  /// How often the rows are walked with this input: for each step that reduces, and once for all others.
  constexpr int passes(int input) const {
    int n = 0;
    bool last = false;
    for (int s = 0; s < steps.size(); ++s)
      if (reads(s, input)) (steps[s].reduces ? n += 1 : n), last = last || !steps[s].reduces;
    return n + (last ? 1 : 0);
  }
  /// Whether an input is one number for all of a row, wherever it is read.
  constexpr bool one_per_row(int input) const {
    for (const chain_step& s : steps)
      for (int k = 0; k < s.sources.size(); ++k)
        if (!s.sources[k].step && s.sources[k].index == input && s.along[k]) return false;
    return true;
  }
  /// Whether an input is the same for all rows: near at hand once it was read.
  constexpr bool same_for_all_rows(int input) const {
    for (const chain_step& s : steps)
      for (int k = 0; k < s.sources.size(); ++k)
        if (!s.sources[k].step && s.sources[k].index == input && !s.lacks_rows[k]) return false;
    return true;
  }
  constexpr bool reduces() const {
    for (const chain_step& s : steps)
      if (s.reduces) return true;
    return false;
  }
  constexpr bool gathers() const {
    for (const chain_step& s : steps)
      if (s.gathers) return true;
    return false;
  }
  constexpr bool has_elements() const {
    for (const chain_step& s : steps)
      if (!s.reduces) return true;
    return false;
  }
};

namespace detail {

template <class Step, std::size_t... K>
constexpr chain_step step_info(std::index_sequence<K...>) {
  chain_step out;
  out.op = &info<typename Step::op>;
  out.reduces = Step::reduces;
  out.gathers = Step::gathers;
  (out.sources.push(
       {Step::template source<static_cast<int>(K)>::is_step, Step::template source<static_cast<int>(K)>::index}),
   ...);
  (out.along.push(signature<typename Step::op>::along_row(static_cast<int>(K))), ...);
  (out.lacks_rows.push(signature<typename Step::op>::lacks_rows(static_cast<int>(K))), ...);
  return out;
}
template <class... Steps>
constexpr chain_info chain_info_of(chain<Steps...>*) {
  chain_info out;
  (out.steps.push(step_info<Steps>(std::make_index_sequence<static_cast<std::size_t>(Steps::operands)>{})), ...);
  for (const chain_step& s : out.steps)
    for (const chain_source& x : s.sources)
      if (!x.step && x.index >= out.inputs) out.inputs = x.index + 1;
  return out;
}

}  // namespace detail

template <class Chain>
inline constexpr chain_info info_of = detail::chain_info_of(static_cast<Chain*>(nullptr));

// What kernels ask of it, as numbers of their own: device code does not see the addresses in the table.
template <class Chain>
inline constexpr int inputs_of = info_of<Chain>.inputs;
template <class Chain, int S, int Input>
inline constexpr bool step_reads = info_of<Chain>.reads(S, Input);
template <class Chain, int Input>
inline constexpr bool is_one_per_row = info_of<Chain>.one_per_row(Input);
template <class Chain, int Input>
inline constexpr bool is_walked_again =
    !info_of<Chain>.one_per_row(Input) && !info_of<Chain>.same_for_all_rows(Input) && info_of<Chain>.passes(Input) > 1;
/// How many steps before S gather; of all of them: S = Chain::steps.
template <class Chain, int S>
inline constexpr int gathered_before = [] {
  int n = 0;
  for (int s = 0; s < S; ++s) n += info_of<Chain>.steps[s].gathers;
  return n;
}();
template <class Chain>
inline constexpr int gathered = gathered_before<Chain, Chain::steps>;
template <class Chain>
inline constexpr bool has_elements = info_of<Chain>.has_elements();

namespace detail {
template <class Op, bool Reduces, std::size_t... I>
auto alone(std::index_sequence<I...>) -> chain<basic_step<Op, Reduces, in<static_cast<int>(I)>...>>;
}
/// An operator alone; inputs are its operands, but for indices that select.
template <class Op, bool Reduces>
using chain_of_one = decltype(detail::alone<Op, Reduces>(
    std::make_index_sequence<static_cast<std::size_t>(signature<Op>::operands - (signature<Op>::selects ? 1 : 0))>{}));

}  // namespace cfp::cuda
