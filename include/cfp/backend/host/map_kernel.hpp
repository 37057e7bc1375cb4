// Map kernels: a functor on corresponding elements of up to eight operands, reduced over the factors the result lacks.
// The loop along a row (one innermost factor) is compiled for each operator, so that it is vectorised; what is around
// it, distributed by Thrust, once for all of them.
#pragma once

#include <cfp/backend/host/map_rows.hpp>
#include <cfp/op/catalogue.hpp>
#include <cfp/op/signature.hpp>

#include <type_traits>
#include <utility>

namespace cfp::inline v0_1::host {

namespace detail {

/// One row: where its elements are, and the functor on them.
template <class Op, class T, walk W>
class map_row {
  using sig = signature<Op>;
  static constexpr int N = sig::operands;

 public:
  map_row(const map_rows<T, N + 1>& m, const long* at, const long* index) : out_(m.result() + at[N]) {
    for (int i = 0; i < N; ++i) {
      stride_[i] = m.stride[i];
      if (i == Op::index_operand) named_ = static_cast<const std::int32_t*>(m.tensor[i]->data) + at[i];
      else x_[i] = static_cast<const T*>(m.tensor[i]->data) + at[i];
    }
    stride_[N] = m.stride[N];
    for (int s = 0; s < Op::scalars; ++s) scalar_[s] = m.scalar[s];
    for (int k = 0; k < sig::coordinates; ++k) {
      const int f = m.c.r().coordinates[k];
      moves_[k] = f == m.factor ? m.c.step_of[f] : 0;
      first_[k] = (f == m.factor ? m.c.start[f] : index[f]) * m.c.step_of[f];
    }
    for (int f = 0; sig::coordinates > 0 && m.cuts && f < m.c.factors; ++f)
      if (const int k = m.c.r().factors[f].part_of; k >= 0) {
        if (f == m.factor) moves_[k] = m.c.step_of[f];
        first_[k] += (f == m.factor ? m.c.start[f] : index[f]) * m.c.step_of[f];
      }
  }
  T operator()(long k) const {
    return apply(k, std::make_index_sequence<static_cast<std::size_t>(N - (sig::selects ? 1 : 0))>{},
                 std::make_index_sequence<static_cast<std::size_t>(Op::scalars)>{},
                 std::make_index_sequence<static_cast<std::size_t>(sig::coordinates)>{});
  }
  T& result(long k) const { return out_[W == walk::strided ? k * stride_[N] : k]; }

 private:
  // What selects a position of a table is not passed on: the operands after it move up by one.
  template <std::size_t... I, std::size_t... S, std::size_t... C>
  T apply(long k, std::index_sequence<I...>, std::index_sequence<S...>, std::index_sequence<C...>) const {
    return Op::apply(element<static_cast<int>(I) + (sig::selects && static_cast<int>(I) >= Op::index_operand)>(k)...,
                     scalar_[S]..., first_[C] + k * moves_[C]...);
  }
  template <int I>
  auto element(long k) const {
    const long where = W == walk::strided ? k * stride_[I] : W == walk::unit || sig::along_row(I) ? k : 0;
    if constexpr (I == Op::index_operand) return static_cast<long>(named_[where]);
    else return x_[I][where];
  }

  const T* x_[N] = {};
  const std::int32_t* named_ = nullptr;
  T* out_;
  long stride_[N + 1] = {}, first_[sig::coordinates + 1] = {}, moves_[sig::coordinates + 1] = {};
  T scalar_[Op::scalars + 1] = {};
};

template <class Op, class T, walk W>
struct map_loop {
  using row = map_row<Op, T, W>;
  using rows = map_rows<T, signature<Op>::operands + 1>;
  static constexpr reduction combined = signature<Op>::combine;

  static void write(const rows& m, const long* at, const long* index) {
    const row f(m, at, index);
    for (long k = 0; k < m.size; ++k) f.result(k) = f(k);
  }
  static void add(const rows& m, const long* at, const long* index) {
    const row f(m, at, index);
    for (long k = 0; k < m.size; ++k) f.result(k) = combine(combined, f.result(k), f(k));
  }
  static T reduce(const rows& m, const long* at, const long* index) {
    const row f(m, at, index);
    T sum = identity_of<T>(combined);
    for (long k = 0; k < m.size; ++k) sum = combine(combined, sum, f(k));
    return sum;
  }
};

// Whether an operand is one number along a row of the rule: else walking as ruled is walking by 1.
template <class Op>
constexpr bool has_ruled_walk() {
  for (int i = 0; i < signature<Op>::operands; ++i)
    if (!signature<Op>::along_row(i)) return true;
  return false;
}

template <class Op, class T, walk W>
constexpr row_loops<T, signature<Op>::operands + 1> loops_of() {
  using loop = map_loop<Op, T, W>;
  if constexpr (signature<Op>::selects) return {nullptr, &loop::add, nullptr};
  else if constexpr (std::is_same_v<Op, copy_t>) return {&loop::write, &loop::add, &loop::reduce};  // see rearranges
  else if constexpr (signature<Op>::reduces) return {nullptr, &loop::add, &loop::reduce};
  else return {&loop::write, nullptr, nullptr};
}

}  // namespace detail

/// Runs a map operator on numbers of type T, which is what it computes in.
template <class Op, class T>
void run_map(const call& c) {
  using sig = signature<Op>;
  using detail::walk;
  constexpr int tensors = sig::operands + 1;
  detail::map_loops<T, tensors> loops{sig::combine,
                                      Op::index_operand,
                                      detail::loops_of<Op, T, walk::unit>(),
                                      detail::loops_of<Op, T, walk::strided>(),
                                      {},
                                      {}};
  if constexpr (!sig::selects && detail::has_ruled_walk<Op>()) {
    loops.ruled = detail::loops_of<Op, T, walk::ruled>();
    for (int i = 0; i < sig::operands; ++i) loops.along_row[i] = sig::along_row(i);
  }
  detail::map_rows<T, tensors> rows(c, Op::scalars);
  detail::run(rows, loops);
}

}  // namespace cfp::host
