// Tracing: a model is an ordinary C++ function on tensors; calling it records the operator graph.
#pragma once

#include <cfp/model/model.hpp>
#include <cfp/op/math.hpp>
#include <cfp/op/op.hpp>

namespace cfp::inline v0_1 {

/// Records one operator; numbers among the arguments are scalars, `size_of` gives sizes.
template <class... A>
constexpr auto trace_operator(const op_info& op, const tensor& first, const A&... more) {
  list<int, max_operands> operands;
  list<double, 8> scalars;
  list<size_of, 4> given;
  operands.push(first.id);
  [[maybe_unused]] const auto take = [&](const auto& a) {
    using type = std::remove_cvref_t<decltype(a)>;
    if constexpr (std::is_same_v<type, tensor>) operands.push(a.net == first.net ? a.id : -1);
    else if constexpr (std::is_same_v<type, size_of>) given.push(a);
    else scalars.push(static_cast<double>(a));
  };
  (take(more), ...);
  if (first.net == nullptr) {
    sentence why;
    say(why, op.label, ": operand 0 is a tensor of no model");
    throw error(why);
  }
  return first.net->record(op, operands, scalars, given);
}

template <lit Rule, class Op>
template <class X, class... More>
constexpr auto op<Rule, Op>::operator()(const X& x, const More&... more) const {
  const int id = trace_operator(info<self>, x, more...);
  constexpr int results = bare_rule<self>.results.size();
  if constexpr (results == 1) {
    return X{x.net, id};
  } else {
    std::array<X, static_cast<std::size_t>(results)> out{};
    for (int i = 0; i < results; ++i) out[static_cast<std::size_t>(i)] = X{x.net, id + i};
    return out;
  }
}

}  // namespace cfp
