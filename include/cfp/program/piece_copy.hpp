// What of an operand of `op_body::pieces` its result takes, as loops of a copy.
#pragma once

#include <cfp/program/loop_nest.hpp>

#include <algorithm>

namespace cfp::inline v0_1 {

struct piece_copy {
  loop_nest<2> loops;       ///< strides of the operand, then of the result
  long from = 0, to = 0;    ///< the first element taken, in either
  bool is_nothing = false;  ///< they have none in common

  piece_copy(const call& c, int operand) {
    const pattern &in = c.r().operands[operand], &out = c.r().results[0];
    const call_tensor* const tensors[2] = {&c.operand[operand], &c.result[0]};
    for (int d = 0; d < in.factors.size(); ++d) {
      const int f = in.factors[d], g = out.factors[d];
      const long first = std::max(c.start[f], c.start[g]),
                 end = std::min(c.start[f] + c.size[f], c.start[g] + c.size[g]);
      const int at = loops.depth;
      loops.add(c, f, tensors);
      loops.size[at] = std::max(0l, end - first);
      loops.stride[1][at] = c.result[0].stride[g];
      from += (first - c.start[f]) * loops.stride[0][at];
      to += (first - c.start[g]) * loops.stride[1][at];
      is_nothing = is_nothing || end <= first;
    }
    loops.collapse(c.r());
  }
};

}  // namespace cfp
