// A map operator's call as that of a chain of one step: which factors are rows, and which run along them.
#pragma once

#include <cfp/backend/cuda/chain/run_chain.hpp>
#include <cfp/backend/cuda/kernel/map_kernel.hpp>

namespace cfp::inline v0_1::cuda {

/// Which kernels an operator has: a copy stands with rules of all kinds, others do what their own says. What somebody
/// may write in a gradient, with a rule that reduces, runs in any shape.
template <class Op>
inline constexpr bool has_flat = std::is_same_v<Op, copy_t> || !signature<Op>::reduces;
template <class Op>
inline constexpr bool has_rows = std::is_same_v<Op, copy_t> || (signature<Op>::reduces && !signature<Op>::selects);
template <class Op>
inline constexpr bool has_any = has_rows<Op> || signature<Op>::selects || !Op::derived;

/// What runs a call: a chain of one step, or the kernel for any shape.
enum class map_shape {
  flat,     ///< nothing is reduced
  rows,     ///< each row is
  columns,  ///< all rows are, to one
  whole,    ///< neighbours are, to one number: rows of equal length (the last may be shorter), and then these
  any,
};

template <class Op>
struct bound_map {
  static constexpr int operands = signature<Op>::operands;
  static constexpr int inputs = operands - (signature<Op>::selects ? 1 : 0);

  map_shape shape = map_shape::any;
  map_loops<operands> loops;
  chain_call chain;  ///< unless any

  explicit bound_map(const call& c) : loops(c) {
    const int outside = loops.outer.depth, inside = loops.inner.depth;
    bool reduces = inside > 0;
    for (int f = 0; f < c.factors; ++f)
      reduces = reduces || (c.r().factors[f].one_hot && c.r().results[0].dim_of(f) >= 0);  // scattered into a table
    for (int i = 0; i < inputs; ++i) {
      chain.input[i].data = c.operand[operand_of(i)].data;
      chain.input[i].wide = c.operand[operand_of(i)].wide || operand_of(i) == Op::index_operand;
    }
    chain.result[0].data = c.result[0].data;
    chain.result[0].wide = c.result[0].wide;
    for (int s = 0; s < Op::scalars; ++s) chain.scalar[0][s] = static_cast<float>(c.op->scalars[s]);
    if (signature<Op>::selects) select(c);
    if (c.r().cuts_coordinates()) return;
    if (!reduces) {
      if (!has_flat<Op> || outside - 1 > max_rows) return;
      shape = map_shape::flat;
      for (int d = 0; d + 1 < outside; ++d) add_row(c, loops.outer, d);
      if (outside > 0) set_row(c, loops.outer, outside - 1);
    } else if (has_rows<Op> && outside == 0 && inside == 1 && signature<Op>::coordinates == 0) {
      shape = map_shape::whole;
      set_row(c, loops.inner, 0);
      cut();
    } else if (has_rows<Op> && inside == 1 && outside <= max_rows && loops.along_reduced()) {
      shape = map_shape::rows;
      for (int d = 0; d < outside; ++d) add_row(c, loops.outer, d);
      set_row(c, loops.inner, 0);
    } else if (has_rows<Op> && outside == 1 && inside <= max_rows && !loops.along_reduced()) {
      shape = map_shape::columns;
      for (int d = 0; d < inside; ++d) add_row(c, loops.inner, d);
      set_row(c, loops.outer, 0);
    }
    if (shape == map_shape::rows || shape == map_shape::whole)
      for (int i = 0; i < inputs; ++i)
        if (!signature<Op>::along_row(operand_of(i)) && chain.input[i].along != 0) shape = map_shape::any;
  }

 private:
  static constexpr int operand_of(int input) {
    return input + (signature<Op>::selects && input >= Op::index_operand ? 1 : 0);
  }

  void add_row(const call& c, const loop_nest<operands + 1>& l, int loop) {
    const int d = chain.dims++;
    chain.size[d] = l.size[loop];
    chain.start[d] = c.start[l.factor[loop]];
    for (int i = 0; i < inputs; ++i) chain.input[i].stride[d] = l.stride[operand_of(i)][loop];
    chain.result[0].stride[d] = l.stride[operands][loop];
    if (signature<Op>::selects)
      chain.positions.stride[d] = l.stride[Op::index_operand < 0 ? 0 : Op::index_operand][loop];
    set_coordinate(c, l.factor[loop], static_cast<signed char>(d));
  }
  void set_row(const call& c, const loop_nest<operands + 1>& l, int loop) {
    chain.length = l.size[loop];
    chain.first = c.start[l.factor[loop]];
    for (int i = 0; i < inputs; ++i) chain.input[i].along = l.stride[operand_of(i)][loop];
    chain.result[0].along = l.stride[operands][loop];
    if (signature<Op>::selects) chain.positions.along = l.stride[Op::index_operand < 0 ? 0 : Op::index_operand][loop];
    set_coordinate(c, l.factor[loop], -1);
  }
  void set_coordinate(const call& c, int f, signed char d) {
    const int which = c.r().coordinates.find(static_cast<signed char>(f));
    if (which >= 0) chain.coordinate[0][which] = d;
  }
  void select(const call& c) {
    chain.positions.data = c.operand[Op::index_operand < 0 ? 0 : Op::index_operand].data;
    for (int f = 0; f < c.factors; ++f) {
      if (!c.r().factors[f].one_hot) continue;
      chain.table_first = c.start[f];
      chain.table_size = c.size[f];
      for (int i = 0; i < inputs; ++i) chain.table_stride[i] = c.operand[operand_of(i)].stride[f];
    }
  }
  // Pieces of what is reduced whole: enough of them for a GPU, and each long.
  void cut() {
    const long total = chain.length, unit = 64, wanted = pieces_of(total, 16384);
    chain.length = pieces_of(pieces_of(total, wanted < 1024 ? wanted : 1024), unit) * unit;
    chain.elements = total;
    chain.dims = 1;
    chain.size[0] = pieces_of(total, chain.length);
    for (int i = 0; i < inputs; ++i) chain.input[i].stride[0] = chain.length * chain.input[i].along;
    chain.result[0].stride[0] = 1;
    chain.result[0].along = 0;
  }
};

}  // namespace cfp::cuda
