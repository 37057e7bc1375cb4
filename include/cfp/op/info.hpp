// What the planner knows of an operator, as a value: its rule, how it computes, and how it is differentiated.
#pragma once

#include <cfp/core/parse.hpp>
#include <cfp/core/propagate.hpp>
#include <cfp/op/type_text.hpp>

#include <array>

namespace cfp::inline v0_1 {

struct op_info;

/// Where an operand of a gradient operator comes from, seen from the forward operator.
struct gradient_source {
  enum kind_t : std::uint8_t { operand, result, gradient, step } from = operand;
  int index = 0;  ///< which operand or result; for `gradient` which result it belongs to; for `step` which earlier step
};

/// One operator of a gradient. Its rule uses the forward rule's factor names, so whatever axis splits a factor
/// forward splits the same factor backward.
struct gradient_step {
  const op_info* op = nullptr;
  std::string_view rule;
  list<gradient_source, max_operands> operands;
  list<signed char, max_results> targets;  ///< per result: the operand it is the gradient of, or -1
};

/// How an operator computes.
enum class op_body : std::uint8_t {
  map,         ///< functor on corresponding elements, then reduced over the factors the result lacks
  product,     ///< the same with multiplication of two operands: a tensor contraction, left to a matrix library
  unstack,     ///< result i is the slice i of the whole factor the results lack
  stack,       ///< its inverse
  pieces,      ///< each element from where the operands have it, which lie one behind the other along a dimension
  update,      ///< optimizer step: results overwrite operands
  accumulate,  ///< adds the second operand to the first, in place; the first time it overwrites it
  routine,     ///< a kernel of its own that sees the whole of its `whole` factors
  scan,        ///< along its `scan` factor every position is given what the one before it left (`handing`)
};

/// What a scan hands from position to position: the first operand as it is, or added to what came before, that times
/// the second operand, if there is one.
struct handing {
  signed char step = 1;  ///< to the next position, or (-1) to the one before
  bool around = false;   ///< what the last leaves goes to the first; else that is given zero
  bool sums = false;
};

struct op_info {
  std::string_view label;
  std::string_view type;  ///< as it is written, without namespaces; nothing where the rule is all of it
  std::string_view rule;
  op_body body = op_body::map;
  linearity linear = linearity::none;
  int scalars = 0;         ///< how many numbers follow the operands of a functor
  int index_operand = -1;  ///< which operand holds indices
  int reach_scalar = -1;   ///< which scalar says how far ahead of the first coordinate the functor looks along the
                           ///< second: of what lies beyond it makes 0, or nothing where it takes a maximum
  handing hands{};         ///< of a scan
  bool unit = false;       ///< its derivative along every operand is one
  bool statistic = false;  ///< a row statistic: the operator that takes it owns its gradient
  std::array<const op_info*, max_operands> slopes{};  ///< operators dz * d(functor)/d(operand i)
  const gradient_step* gradient = nullptr;            ///< written out by hand, where that is better
  int gradient_steps = 0;
};

/// "<2>": what tells operators of one template apart, which have one label.
constexpr std::string_view template_arguments(const op_info& op) {
  return op.type.substr(detail::outside(op.type, 0, "<"));
}

/// Elements of one operand in another order, or added up, as a rule alone says: a copy's kernel does it.
constexpr bool rearranges(const op_info& op) {
  return op.body == op_body::map && op.unit && op.linear == linearity::all && op.label == "rearrange";
}

}  // namespace cfp
