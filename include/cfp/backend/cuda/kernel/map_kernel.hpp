// Map operators of any shape: any strides, any reduced factors, one-hot factors that are summed. A thread or a warp
// computes a result, or a part of it that `fold_kernel` combines with the others.
#pragma once

#include <cfp/backend/cuda/kernel/storage.hpp>
#include <cfp/program/loop_nest.hpp>

#include <utility>

namespace cfp::inline v0_1::cuda {

/// The loops of a map operator: over what its result has, and over what is reduced. One-hot factors of operands are in
/// neither.
template <int Operands>
struct map_loops {
  loop_nest<Operands + 1> outer, inner;

  explicit map_loops(const call& c) {
    const rule& r = c.r();
    const call_tensor* all[Operands + 1];
    for (int i = 0; i < Operands; ++i) all[i] = &c.operand[i];
    all[Operands] = &c.result[0];
    const auto counts = [&](int f) { return !r.factors[f].one_hot && (c.size[f] != 1 || r.coordinate_of(f) >= 0); };
    for (signed char f : r.results[0].factors)
      if (counts(f) || r.factors[f].one_hot) outer.add(c, f, all);
    for (int f = 0; f < r.factors.size(); ++f)
      if (r.results[0].dim_of(f) < 0 && counts(f)) inner.add(c, f, all);
    inner.sort();
    outer.collapse(r);
    inner.collapse(r);
  }

  /// Lanes of a warp share a result where many neighbours are reduced.
  int lanes() const { return along_reduced() && inner.count() >= warp_size ? warp_size : 1; }
  /// Parts of results where these are few and long, so that there are threads enough.
  long parts() const {
    const long wanted = pieces_of(1L << 17, outer.count() * lanes()), most = pieces_of(inner.count(), 16L * lanes());
    return wanted < most ? wanted : most;
  }
  /// Neighbours in the first operand are reduced, rather than neighbours in the result.
  bool along_reduced() const {
    return outer.depth == 0 ||
           (inner.depth > 0 && (inner.stride[0][inner.depth - 1] <= outer.stride[0][outer.depth - 1] ||
                                outer.stride[0][outer.depth - 1] == 0));
  }
};

template <class Op, class T>
struct map_kernel {
  static constexpr int threads = 256;
  static constexpr int operands = signature<Op>::operands, coordinates = signature<Op>::coordinates;
  static constexpr reduction combined = signature<Op>::combine;

  struct loops {
    int depth = 0;
    divisor size[max_factors];
    long first[max_factors] = {}, step[max_factors] = {};
    signed char coordinate[max_factors] =
        {};  // which of the functor's indices it is, or -1; the one after them is a one-hot factor
    long stride[operands + 1][max_factors] = {};
  } outer, inner;
  chain_tensor operand[operands], result;
  float scalar[Op::scalars + 1] = {};
  long table_first = 0, table_size = 0, table_stride[operands] = {};  // size 0: the table is the result
  long results = 1, reduced = 1, parts = 1;
  int lanes = 1;  // that share a result: 1, or those of a warp
  float* partial;

  map_kernel(const call& c, const map_loops<operands>& l, float* memory) : lanes(l.lanes()), partial(memory) {
    copy(c, l.outer, outer, results);
    copy(c, l.inner, inner, reduced);
    for (int i = 0; i < operands; ++i) {
      operand[i].data = c.operand[i].data;
      operand[i].wide = c.operand[i].wide || i == Op::index_operand;
      for (int f = 0; f < c.factors; ++f)
        if (c.r().factors[f].one_hot) table_stride[i] = c.operand[i].stride[f];
    }
    for (int f = 0; f < c.factors; ++f)
      if (c.r().factors[f].one_hot)
        table_first = c.start[f], table_size = c.r().results[0].dim_of(f) < 0 ? c.size[f] : 0;
    result.data = c.result[0].data;
    result.wide = c.result[0].wide;
    for (int s = 0; s < Op::scalars; ++s) scalar[s] = static_cast<float>(c.op->scalars[s]);
    parts = l.parts();
  }

  long blocks() const { return pieces_of(results * parts * lanes, threads); }

  template <class Thread>
  CFP_DEVICE void operator()(const Thread& t) const {
    const long task = (t.block() * threads + t.thread()) / lanes;
    if (task >= results * parts) return;
    const long number = task % results, part = task / results, length = pieces_of(reduced, parts);
    long at[operands + 1] = {}, place[coordinates + 1] = {};
    locate(outer, number, at, place);
    float sum = identity<combined>;
    const long end = (part + 1) * length < reduced ? (part + 1) * length : reduced;
    CFP_UNROLL4
    for (long n = part * length + (lanes > 1 ? t.lane() : 0); n < end; n += lanes) {
      float x;
      if (!value(n, at, place, x)) continue;
      sum = inner.depth == 0 ? x : combine<combined>(sum, x);
    }
    if (lanes > 1) {
      sum = t.template reduce_warp<combined>(sum);
      if (t.lane() > 0) return;
    }
    if (parts > 1) partial[task] = sum;
    else store_one<T>(result, at[operands], sum);
  }

 private:
  static void copy(const call& c, const loop_nest<operands + 1>& from, loops& to, long& count) {
    to.depth = from.depth;
    count = from.count();
    for (int d = 0; d < from.depth; ++d) {
      to.size[d] = divisor(from.size[d]);
      to.first[d] = c.start[from.factor[d]];
      if (c.r().factors[from.factor[d]].one_hot) to.coordinate[d] = coordinates;
      else to.coordinate[d] = static_cast<signed char>(c.r().coordinate_of(from.factor[d]));
      to.step[d] = c.step_of[from.factor[d]];
      for (int t = 0; t <= operands; ++t) to.stride[t][d] = from.stride[t][d];
    }
  }
  CFP_DEVICE static void locate(const loops& l, long number, long (&at)[operands + 1],
                                [[maybe_unused]] long (&place)[coordinates + 1]) {
    for (int d = l.depth - 1; d >= 0; --d) {
      long k;
      number = l.size[d].divide(number, k);
      CFP_UNROLL
      for (int i = 0; i <= operands; ++i) at[i] += k * l.stride[i][d];
      CFP_UNROLL
      for (int i = 0; i < coordinates + (signature<Op>::selects ? 1 : 0); ++i)
        if (l.coordinate[d] == i) place[i] += (l.first[d] + k) * l.step[d];
    }
  }
  // The functor at iteration n of the reduced loops; false where an index names a table position that is not here.
  CFP_DEVICE bool value(long n, const long (&base)[operands + 1], const long (&around)[coordinates + 1],
                        float& x) const {
    long at[operands + 1], place[coordinates + 1];
    CFP_UNROLL
    for (int i = 0; i <= operands; ++i) at[i] = base[i];
    CFP_UNROLL
    for (int i = 0; i <= coordinates; ++i) place[i] = around[i];
    locate(inner, n, at, place);
    if constexpr (signature<Op>::selects) {
      const long named = index(at[Op::index_operand]), position = named - table_first;
      if (table_size == 0 && named != place[coordinates]) return false;
      if (table_size > 0 && (position < 0 || position >= table_size)) return false;
      CFP_UNROLL
      for (int i = 0; i < operands && table_size > 0; ++i) at[i] += position * table_stride[i];
    }
    x = apply(at, place,
              std::make_index_sequence<static_cast<std::size_t>(operands - (signature<Op>::selects ? 1 : 0))>{},
              std::make_index_sequence<static_cast<std::size_t>(Op::scalars)>{},
              std::make_index_sequence<static_cast<std::size_t>(coordinates)>{});
    return true;
  }
  template <std::size_t... I, std::size_t... S, std::size_t... C>
  CFP_DEVICE float apply(const long (&at)[operands + 1], [[maybe_unused]] const long (&place)[coordinates + 1],
                         std::index_sequence<I...>, std::index_sequence<S...>, std::index_sequence<C...>) const {
    return Op::apply(argument<static_cast<int>(I)>(at)..., scalar[S]..., place[C]...);
  }
  // An index that selects is not passed on; the operands after it move up by one.
  template <int I>
  CFP_DEVICE auto argument(const long (&at)[operands + 1]) const {
    constexpr int i = I + (signature<Op>::selects && I >= Op::index_operand ? 1 : 0);
    if constexpr (i == Op::index_operand) return index(at[i]);
    else return load_one<T>(operand[i], at[i]);
  }
  CFP_DEVICE long index(long at) const {
    if constexpr (Op::index_operand >= 0) return static_cast<const std::int32_t*>(operand[Op::index_operand].data)[at];
    else return at;
  }
};

}  // namespace cfp::cuda
