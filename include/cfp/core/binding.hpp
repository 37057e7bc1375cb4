// What binding a rule to operands takes and gives.
#pragma once

#include <cfp/core/dims.hpp>
#include <cfp/core/rule.hpp>
#include <cfp/core/text_error.hpp>

namespace cfp::inline v0_1 {

/// Why a rule and its operands do not fit.
struct binding_problem {
  enum kind_t : std::uint8_t {
    nothing,
    unreadable,  ///< the rule
    operand_count,
    rank,   ///< an operand has another number of dimensions than the rule says
    parts,  ///< a compound dimension has another number of parts than the rule or another operand
    order,  ///< a compound dimension has the rule's parts in another order
    names,  ///< two operands call one factor differently
    sizes,  ///< two operands have one factor in different sizes, or factors do not make the size of a fused dimension
    indivisible,  ///< a factor of a fused dimension does not divide among the devices that split it
  } kind = nothing;
  int operand = -1, other = -1;    ///< other: the one whose names or sizes were taken
  long given = 0, wanted = 0;      ///< counts or sizes
  name factor;                     ///< as the rule calls it
  text_error text{};               ///< unreadable
  int part = -1, other_part = -1;  ///< which of its operand's dimensions; order, names and sizes

  constexpr explicit operator bool() const { return kind != nothing; }
};

/// A tensor as an operator sees it.
struct operand_view {
  const dimensions* shape = nullptr;
  const partition* held = nullptr;
  std::string_view label{};  ///< its name, where it has one
  long element_bytes = 4;
};

/// A factor's size that operands do not show.
struct given_size {
  std::string_view factor;
  long size = 0;
};

struct binding {
  rule r;                                           ///< with compound factors cut
  factor_sizes sizes;                               ///< 0: not known
  list<std::string_view, max_factors> labels;       ///< what the operands call the factors
  list<bool, max_factors> lent;                     ///< whether that is no name of theirs, but of a rule
  list<std::string_view, max_factors> rule_labels;  ///< what the rule calls them; empty for parts of one and for "..."
  list<partition, max_operands> operands;           ///< over the cut dimensions
  binding_problem problem;

  /// Position of a factor's dimension among an operand's parts as they were given.
  int given_part[max_operands][max_dims]{};
};

}  // namespace cfp
