// Runs a map operator by the kernel for its shape, and movements and slices of tensors.
#pragma once

#include <cfp/backend/cuda/chain/chains.hpp>
#include <cfp/backend/cuda/kernel/bind_map.hpp>
#include <cfp/backend/cuda/kernel/scatter_kernel.hpp>
#include <cfp/backend/cuda/kernel/transpose_kernel.hpp>
#include <cfp/core/bad_input.hpp>
#include <cfp/program/piece_copy.hpp>

namespace cfp::inline v0_1::cuda {

namespace detail {

template <lit Rule, class Op>
std::true_type is_movement(const movement<Rule, Op>*);
std::false_type is_movement(...);
template <lit Rule, class Op>
std::true_type is_addition(const addition<Rule, Op>*);
std::false_type is_addition(...);

template <class Op>
auto functor() {
  constexpr bool alone = requires { requires !Op::named; };
  constexpr bool reduces = signature<Op>::reduces;
  if constexpr (alone || (!reduces && decltype(is_movement(static_cast<Op*>(nullptr)))::value)) return copy_t{};
  else if constexpr (!reduces && decltype(is_addition(static_cast<Op*>(nullptr)))::value) return add_t{};
  else return Op{};
}

}  // namespace detail

/// The operator whose kernels run this one: one set of kernels for all that copy, one for all that add. An unnamed rule
/// is a copy.
template <class Op>
using functor_t = decltype(detail::functor<Op>());

namespace detail {

template <class Op, class T, class Queue>
void run_any(const Queue& q, const call& c, const map_loops<signature<Op>::operands>& loops, void* workspace) {
  const map_kernel<Op, T> k(c, loops, static_cast<float*>(workspace));
  launch(q, k);
  if (k.parts == 1) return;
  chain_tensor result = k.result;
  result.along = 1;  // results lie in the order of their loops
  const fold_kernel<signature<Op>::combine, T> f{k.partial, k.parts, k.results, result};
  launch(q, f, f.shared_bytes);
}
template <int Operands>
long any_workspace(const map_loops<Operands>& loops) {
  return loops.parts() > 1 ? loops.parts() * loops.outer.count() * static_cast<long>(sizeof(float)) : 0;
}

// Sums of rows, and the sum of these.
template <class Op, class T, class Queue>
void run_whole(const Queue& q, chain_call c, void* workspace) {
  const chain_tensor result = c.result[0];
  c.result[0].data = workspace;
  c.result[0].wide = true;
  run_rows<chain_of_one<Op, true>, T>(q, c);
  const fold_kernel<signature<Op>::combine, T> f{static_cast<const float*>(workspace), c.size[0], 1, result};
  launch(q, f, f.shared_bytes);
}

// A copy in another order.
template <class T, class Queue>
void run_copy(const Queue& q, const chain_call& c) {
  const int column = transpose_kernel<T>::column_of(c);
  if (c.input[0].along > 1 && c.length >= 8 && column >= 0 && c.size[column] >= 8) {
    const transpose_kernel<T> k(c, column);
    launch(q, k, k.shared_bytes);
  } else {
    run_flat<chain_of_one<copy_t, false>, T>(q, c);
  }
}

}  // namespace detail

/// Bytes of workspace for run_map.
template <class Op, class T, class Queue>
long map_workspace(const Queue& q, const call& c) {
  if constexpr (signature<Op>::selects)
    if (const bound_scatter<Op> s(c); s.usual) return s.workspace(q);
  const bound_map<Op> b(c);
  if constexpr (has_rows<Op>)
    if (b.shape == map_shape::columns) return columns_workspace<chain_of_one<Op, true>, T>(b.chain);
  if (b.shape == map_shape::whole) return b.chain.size[0] * static_cast<long>(sizeof(float));
  return b.shape == map_shape::any ? detail::any_workspace(b.loops) : 0;
}

/// Runs a map operator with any rule, on any piece.
template <class Op, class T, class Queue>
void run_map(const Queue& q, const call& c, void* workspace) {
  if constexpr (signature<Op>::selects)
    if (const bound_scatter<Op> s(c); s.usual) return run_scatter<Op, T>(q, s, workspace);
  const bound_map<Op> b(c);
  if constexpr (has_flat<Op>)
    if (b.shape == map_shape::flat) {
      if constexpr (signature<Op>::selects) return run_selected<chain_of_one<Op, false>, T>(q, b.chain);
      else if constexpr (std::is_same_v<Op, copy_t>) return detail::run_copy<T>(q, b.chain);
      else return run_flat<chain_of_one<Op, false>, T>(q, b.chain);
    }
  if constexpr (has_rows<Op>) {
    if (b.shape == map_shape::rows) return run_rows<chain_of_one<Op, true>, T>(q, b.chain);
    if (b.shape == map_shape::whole) return detail::run_whole<Op, T>(q, b.chain, workspace);
    if (b.shape == map_shape::columns) return run_columns<chain_of_one<Op, true>, T>(q, b.chain, workspace);
  }
  if constexpr (has_any<Op>) detail::run_any<Op, T>(q, c, b.loops, workspace);
  else
    throw bad_input("operator '" + std::string(Op::label()) +
                    "' reduces nothing by its own rule and is not made to stand with one that does");
}

/// What a result takes of each operand, where they lie one behind the other.
template <class T, class Queue>
void run_pieces(const Queue& q, const call& c) {
  for (int k = 0; k < c.r().operands.size(); ++k) {
    const piece_copy piece(c, k);
    if (piece.is_nothing) continue;
    const int depth = piece.loops.depth;
    chain_call bound;
    bound.dims = depth > 0 ? depth - 1 : 0;
    bound.length = depth > 0 ? piece.loops.size[depth - 1] : 1;
    for (int d = 0; d < bound.dims; ++d) bound.size[d] = piece.loops.size[d];
    const auto bind = [&](chain_tensor& to, const call_tensor& t, int side, long first) {
      to.wide = t.wide;
      to.data = static_cast<std::byte*>(t.data) + first * (to.wide ? 4 : static_cast<long>(sizeof(T)));
      for (int d = 0; d < bound.dims; ++d) to.stride[d] = piece.loops.stride[side][d];
      to.along = depth > 0 ? piece.loops.stride[side][depth - 1] : 1;
    };
    bind(bound.input[0], c.operand[k], 0, piece.from);
    bind(bound.result[0], c.result[0], 1, piece.to);
    detail::run_copy<T>(q, bound);
  }
}

/// Copies between a tensor and the slices of its whole factor, up to three slices at a time.
template <class T, class Queue>
void run_slices(const Queue& q, const call& c, bool stack) {
  const pattern& all = stack ? c.r().results[0] : c.r().operands[0];
  const pattern& one = stack ? c.r().operands[0] : c.r().results[0];
  const call_tensor& whole = stack ? c.result[0] : c.operand[0];
  const call_tensor* slice = stack ? c.operand : c.result;
  int slices = -1;
  for (signed char f : all.factors)
    if (one.dim_of(f) < 0) slices = f;
  const call_tensor* both[2] = {&whole, slice};
  loop_nest<2> loops;
  for (signed char f : one.factors)
    if (c.size[f] > 1) loops.add(c, f, both);
  loops.collapse(c.r());
  for (long first = 0; first < c.size[slices];) {
    chain_call bound;
    bound.dims = loops.depth > 0 ? loops.depth - 1 : 0;
    bound.length = loops.depth > 0 ? loops.size[loops.depth - 1] : 1;
    for (int d = 0; d < bound.dims; ++d) bound.size[d] = loops.size[d];
    const long count = c.size[slices] - first >= 3 ? 3 : 1;
    for (long k = 0; k < count; ++k) {
      chain_tensor& w = stack ? bound.result[k] : bound.input[k];
      chain_tensor& s = stack ? bound.input[k] : bound.result[k];
      w.data = static_cast<std::byte*>(whole.data) +
               (first + k) * whole.stride[slices] * (whole.wide ? 4 : static_cast<long>(sizeof(T)));
      w.wide = whole.wide;
      s.data = slice[first + k].data;
      s.wide = slice[first + k].wide;
      chain_tensor* const to[2] = {&w, &s};
      for (int t = 0; t < 2; ++t) {
        for (int d = 0; d < bound.dims; ++d) to[t]->stride[d] = loops.stride[t][d];
        to[t]->along = loops.depth > 0 ? loops.stride[t][loops.depth - 1] : 1;
      }
    }
    if (count == 3) run_flat<three_copies, T>(q, bound);
    else detail::run_copy<T>(q, bound);
    first += count;
  }
}

}  // namespace cfp::cuda
