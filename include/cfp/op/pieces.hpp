// Two tensors, one behind the other along a dimension, and a part of one: how slices of a sequence are put together
// and taken apart (`in_slices`). Where along the dimension each begins, its factor says (`operation::first`).
#pragma once

#include <cfp/op/op.hpp>

namespace cfp::inline v0_1 {

struct join_t : op<"... before, ... next -> ... all; whole before next all", join_t> {
  static constexpr op_body body = op_body::pieces;
  static constexpr linearity linear = linearity::all;
};

/// As long as its result. The gradient of either operand of a join.
struct piece_t : op<"... all -> ... next; whole all next", piece_t> {
  static constexpr op_body body = op_body::pieces;
  static constexpr linearity linear = linearity::all;
  static constexpr bool derived = true;
};

}  // namespace cfp
