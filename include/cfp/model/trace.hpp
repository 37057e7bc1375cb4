// Tracing: a model is an ordinary C++ function on tensors; calling it records the operator graph.
#pragma once

#include <cfp/core/shape_error.hpp>
#include <cfp/model/model.hpp>
#include <cfp/op/math.hpp>
#include <cfp/op/op.hpp>

#include <type_traits>

namespace cfp::inline v0_1 {

namespace detail {

/// What stands in a call behind the first operand.
template <class... More>
struct call_arguments {
  static constexpr int tensors = 1 + (0 + ... + std::is_same_v<More, tensor>);
  static constexpr int numbers = (0 + ... + std::is_arithmetic_v<More>);
  static constexpr int sizes = (0 + ... + std::is_same_v<More, size_of>);

  static constexpr sentence stranger(std::string_view op) {
    constexpr bool known[] = {
        true, (std::is_same_v<More, tensor> || std::is_arithmetic_v<More> || std::is_same_v<More, size_of>)...};
    long first = 0;
    while (known[first]) ++first;
    sentence s;
    say(s, op, ": argument ", first, " is none of them");
    return s;
  }
};

template <class Op>
constexpr sentence operands_problem(long given) {
  sentence s;
  say(s, Op::label(), ": is given ");
  say_count(s, given, "operand");
  say(s, ", its rule \"", Op::rule_source, "\" has ", static_cast<long>(bare_rule<Op>.operands.size()));
  return s;
}
template <class Op>
constexpr sentence numbers_problem(long given) {
  sentence s;
  say(s, Op::label(), ": is given ");
  say_count(s, given, "number");
  say(s, " behind its operands, takes ", static_cast<long>(Op::scalars));
  return s;
}

/// Whether a call gives an operator what it takes, or a sentence.
template <class Op, class... More>
consteval bool call_fits() {
  using given = call_arguments<More...>;
  constexpr int operands = bare_rule<Op>.operands.size();
  if constexpr (given::tensors + given::numbers + given::sizes != 1 + static_cast<int>(sizeof...(More))) {
    constexpr sentence why = given::stranger(Op::label());
    static_assert(call_has_tensors_numbers_and_sizes<said<shorten<why.count>(why)>>());
    return false;
  } else if constexpr (given::tensors != operands) {
    constexpr sentence why = operands_problem<Op>(given::tensors);
    static_assert(operands_as_many_as_the_rule_has<said<shorten<why.count>(why)>>());
    return false;
  } else if constexpr (given::numbers != Op::scalars) {
    constexpr sentence why = numbers_problem<Op>(given::numbers);
    static_assert(numbers_as_many_as_the_functor_takes<said<shorten<why.count>(why)>>());
    return false;
  } else {
    return true;
  }
}

}  // namespace detail

/// Records one operator; numbers among the arguments are scalars, `size_of` gives sizes.
template <class... A>
constexpr int trace_operator(const op_info& op, const first_operand& first, const A&... more) {
  model* const net = first.value.net;
  list<int, max_operands> operands;
  list<double, 8> scalars;
  list<size_of, 4> given;
  operands.push(first.value.id);
  [[maybe_unused]] const auto take = [&](const auto& a) {
    using type = std::remove_cvref_t<decltype(a)>;
    if constexpr (std::is_same_v<type, tensor>) operands.push(a.net == net ? a.id : -1);
    else if constexpr (std::is_same_v<type, size_of>) given.push(a);
    else scalars.push(static_cast<double>(a));
  };
  (take(more), ...);
  if (net == nullptr) {
    sentence why;
    say_place(why, first.at);
    say(why, op.label, ": operand 0 is a tensor of no model");
    throw shape_error(why);
  }
  return net->record(op, operands, scalars, given, first.at);
}

template <lit Rule, class Op>
template <class... More>
constexpr auto op<Rule, Op>::operator()(const first_operand& first, const More&... more) const {
  constexpr int results = bare_rule<self>.results.size();
  int id = -1;
  if constexpr (detail::call_fits<self, More...>()) id = trace_operator(info<self>, first, more...);
  if constexpr (results == 1) {
    return tensor{first.value.net, id};
  } else {
    std::array<tensor, static_cast<std::size_t>(results)> out{};
    for (int i = 0; i < results; ++i) out[static_cast<std::size_t>(i)] = tensor{first.value.net, id + i};
    return out;
  }
}

}  // namespace cfp
