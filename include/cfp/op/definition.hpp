// Whether an operator is written as it is used: a functor that takes what its rule and its scalars say, gradient steps
// that speak of the rule's factors. Each mistake is a sentence, where the operator is first used.
#pragma once

#include <cfp/core/check.hpp>
#include <cfp/op/info.hpp>

#include <utility>

namespace cfp::inline v0_1 {

template <class Op>
inline constexpr rule bare_rule = parse(Op::rule_source);

namespace detail {

constexpr bool has_one_hot(const rule& r) {
  for (const factor& f : r.factors)
    if (f.one_hot) return true;
  return false;
}

/// What a functor is called with.
template <class Op>
struct functor_arguments {
  static constexpr bool selects = has_one_hot(bare_rule<Op>);  ///< then the index is not passed on
  static constexpr int operands = bare_rule<Op>.operands.size() - (selects ? 1 : 0);
  static constexpr int positions = bare_rule<Op>.coordinates.size();

  template <std::size_t N>
  static std::conditional_t<!selects && static_cast<int>(N) == Op::index_operand, long, float> operand();

  template <std::size_t... N, std::size_t... S, std::size_t... P>
  static constexpr bool fit(std::index_sequence<N...>, std::index_sequence<S...>, std::index_sequence<P...>) {
    return requires { Op::apply(operand<N>()..., (static_cast<void>(S), 1.0f)..., (static_cast<void>(P), 1l)...); };
  }
};

/// Whether an operator's functor takes them; one that is no functor does.
template <class Op>
constexpr bool functor_fits() {
  using arguments = functor_arguments<Op>;
  if constexpr (Op::body != op_body::map) return true;
  else
    return arguments::fit(std::make_index_sequence<static_cast<std::size_t>(arguments::operands)>{},
                          std::make_index_sequence<static_cast<std::size_t>(Op::scalars)>{},
                          std::make_index_sequence<static_cast<std::size_t>(arguments::positions)>{});
}

constexpr void say_count(sentence& s, long n, const char* of_one) { say(s, n, " ", of_one, n == 1 ? "" : "s"); }

template <class Op>
constexpr sentence functor_problem() {
  sentence s;
  say(s, Op::label(), ": apply is called with ");
  say_count(s, functor_arguments<Op>::operands, "operand");
  say(s, ", ");
  say_count(s, Op::scalars, "scalar");
  say(s, " and ");
  say_count(s, functor_arguments<Op>::positions, "position");
  say(s, ", and cannot be; its rule is \"", Op::rule_source, "\"");
  return s;
}

/// The first thing a gradient's step says that its operator's rule does not, or nothing.
template <class Op>
constexpr sentence gradient_problem() {
  sentence s;
  long number = 0;
  for (const gradient_step& step : Op::gradient) {
    const parsed_rule read = read_rule(step.rule);
    const auto begin = [&] { say(s, Op::label(), ": step ", number, " of its gradient, \"", step.rule, "\", "); };
    if (read.problem) {
      begin();
      say_error(s, read.problem, step.rule);
      return s;
    }
    for (const factor& f : read.value.factors) {
      if (bare_rule<Op>.find(f.label) >= 0) continue;
      begin();
      say(s, "has a factor '", f.label.view(), "', which its rule has not; it has");
      for (const factor& known : bare_rule<Op>.factors) say(s, " '", known.label.view(), "'");
      return s;
    }
    if (step.operands.size() != read.value.operands.size()) {
      begin();
      say(s, "has ");
      say_count(s, read.value.operands.size(), "operand");
      say(s, ", is given ", static_cast<long>(step.operands.size()));
      return s;
    }
    ++number;
  }
  return s;
}

template <class Op>
constexpr sentence scan_problem() {
  sentence s;
  if ((bare_rule<Op>.scanned() >= 0) == (Op::body == op_body::scan)) return s;
  say(s, Op::label(), ": its rule \"", Op::rule_source, "\" ",
      Op::body == op_body::scan ? "scans nothing: mark the factor"
                                : "scans; what is handed on must be known to run it: ",
      Op::body == op_body::scan ? "" : "derive it from cfp::scan_op, or mark the factor `whole`");
  return s;
}

template <class Op>
consteval bool defined() {
  if constexpr (constexpr sentence why = scan_problem<Op>(); !why.empty())
    static_assert(scan_says_what_it_hands_on<said<shorten<why.count>(why)>>());
  if constexpr (!functor_fits<Op>()) {
    constexpr sentence why = functor_problem<Op>();
    static_assert(functor_takes_what_it_is_given<said<shorten<why.count>(why)>>());
  }
  if constexpr (Op::gradient.size() > 0) {
    constexpr sentence why = gradient_problem<Op>();
    static_assert(gradient_has_the_factors_of_the_rule<said<shorten<why.count>(why)>>());
  }
  return true;
}

}  // namespace detail

}  // namespace cfp
