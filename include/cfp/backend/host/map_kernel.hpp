// Map kernels: a functor on corresponding elements of up to eight operands, reduced over the factors the result lacks.
// (long: one kernel, in each way that its loops can lie)
// Rows (one innermost factor) are distributed by Thrust; the loop within a row is written so that compilers vectorise
// it.
#pragma once

#include <cfp/backend/numbers.hpp>
#include <cfp/op/signature.hpp>
#include <cfp/program/loop_nest.hpp>

#include <thrust/execution_policy.h>
#include <thrust/for_each.h>
#include <thrust/iterator/counting_iterator.h>

#include <limits>

namespace cfp::inline v0_1::host {

template <class T>
T identity_of(reduction r) {
  if (r == reduction::max) return -std::numeric_limits<T>::infinity();
  if (r == reduction::min) return std::numeric_limits<T>::infinity();
  return T(0);
}
template <reduction R, class T>
T combine(T a, T b) {
  if constexpr (R == reduction::max) return a > b ? a : b;
  else if constexpr (R == reduction::min) return a < b ? a : b;
  else return a + b;
}

namespace detail {

// How operands walk along a row: every one by 1, as the operator's rule says (1 where the operand has the last
// factor), or by strides known only now.
enum class walk { unit, ruled, strided };

template <class Op, class T, int N, int Scalars, int Coordinates>
struct map_kernel {
  static constexpr int tensors = N + 1;  // the last is the result
  using wide = wide_t<T>;
  const call& c;
  numbers<T> operand[N] = {};
  const std::int32_t* indices = nullptr;
  numbers<T> result{};
  wide scalar[Scalars + 1] = {};
  loop_nest<tensors> outer{}, inner{};

  explicit map_kernel(const call& from) : c(from) {
    const call_tensor* all[tensors];
    for (int i = 0; i < N; ++i) {
      all[i] = &c.operand[i];
      if (i == Op::index_operand) indices = static_cast<const std::int32_t*>(c.operand[i].data);
      else operand[i] = numbers<T>(c.operand[i]);
    }
    all[N] = &c.result[0];
    result = numbers<T>(c.result[0]);
    for (int s = 0; s < Scalars; ++s) scalar[s] = static_cast<wide>(c.op->scalars[s]);
    const rule& r = c.r();
    for (signed char f : r.results[0].factors) outer.add(c, f, all);
    for (int f = 0; f < r.factors.size(); ++f) {  // reduced factors, in the order the operands hold them
      if (r.results[0].dim_of(f) >= 0) continue;
      inner.add(c, f, all);
    }
    inner.sort();
    outer.collapse(r);
    inner.collapse(r);
  }

  template <walk W, int I>
  static long step(const long* strides) {
    if constexpr (W == walk::unit) return 1;
    else if constexpr (W == walk::ruled) return signature<Op>::along_row(I) ? 1 : 0;
    else return strides[I];
  }

  template <walk W, std::size_t I>
  auto element(const long* at, const long* strides, long k) const {
    const long where = at[I] + k * step<W, static_cast<int>(I)>(strides);
    if constexpr (static_cast<int>(I) == Op::index_operand) return static_cast<long>(indices[where]);
    else return operand[I][where];
  }

  // The functor on element k of the row that starts at offsets `at`. `row` is the factor the row runs along.
  template <walk W, std::size_t... I, std::size_t... S, std::size_t... C>
  wide apply(const long* at, const long* strides, long k, [[maybe_unused]] const long* index, [[maybe_unused]] int row,
             std::index_sequence<I...>, std::index_sequence<S...>, std::index_sequence<C...>) const {
    return Op::apply(element<W, I>(at, strides, k)..., scalar[S]..., coordinate(static_cast<int>(C), index, row, k)...);
  }
  long coordinate(int which, const long* index, int row, long k) const {
    const int f = c.r().coordinates[which];
    return f == row ? c.start[f] + k : index[f];
  }
  template <walk W>
  wide apply(const long* at, const long* strides, long k, const long* index, int row) const {
    return apply<W>(at, strides, k, index, row, std::make_index_sequence<N>{}, std::make_index_sequence<Scalars>{},
                    std::make_index_sequence<Coordinates>{});
  }

  // result[k] = or accumulates f(k), along a row of the result.
  template <walk W, reduction R, bool Accumulate>
  void along_result(const long* at, const long* strides, long n, const long* index, int row) const {
    const numbers<T> out = result + at[N];
    const long so = W == walk::strided ? strides[N] : 1;
    for (long k = 0; k < n; ++k) {
      const wide x = apply<W>(at, strides, k, index, row);
      if constexpr (Accumulate) out.set(k * so, combine<R>(out[k * so], x));
      else out.set(k * so, x);
    }
  }
  // One element of the result = reduction of f along a row.
  template <walk W, reduction R>
  wide along_reduced(const long* at, const long* strides, long n, const long* index, int row) const {
    wide sum = identity_of<wide>(R);
    for (long k = 0; k < n; ++k) sum = combine<R>(sum, apply<W>(at, strides, k, index, row));
    return sum;
  }

  template <class F>
  void with_walk(const loop_nest<tensors>& rows, bool result_moves, F&& f) const {
    long strides[tensors] = {};
    bool unit = true, ruled = true;
    const int last = rows.depth - 1;
    for (int t = 0; t < tensors; ++t) {
      strides[t] = last < 0 ? (t == N && !result_moves ? 0 : 1) : rows.stride[t][last];
      if (t == N) {
        if (result_moves) unit = unit && strides[t] == 1, ruled = ruled && strides[t] == 1;
        continue;
      }
      unit = unit && strides[t] == 1;
      ruled = ruled && strides[t] == (signature<Op>::along_row(t) ? 1 : 0);
    }
    if (unit) f.template operator()<walk::unit>(strides);
    else if (ruled && !Op::rule_source.empty()) f.template operator()<walk::ruled>(strides);
    else f.template operator()<walk::strided>(strides);
  }

  // Splits off the innermost loop as the row.
  static loop_nest<tensors> without_last(loop_nest<tensors> n) {
    if (n.depth > 0) --n.depth;
    return n;
  }
  static long row_size(const loop_nest<tensors>& n) { return n.depth > 0 ? n.size[n.depth - 1] : 1; }
  static int row_factor(const loop_nest<tensors>& n) { return n.depth > 0 ? n.factor[n.depth - 1] : -1; }

  template <reduction R>
  void run() const {
    const auto rows_of = [](long n, auto f) {
      thrust::for_each_n(thrust::cpp::par, thrust::counting_iterator<long>(0), n, f);
    };
    if (inner.depth == 0) {  // elementwise
      const loop_nest<tensors> rest = without_last(outer);
      with_walk(outer, true, [&]<walk W>(const long* strides) {
        rows_of(rest.count(), [&, this](long n) {
          long at[tensors] = {}, index[max_factors] = {};
          rest.locate(n, c, at, index);
          along_result<W, R, false>(at, strides, row_size(outer), index, row_factor(outer));
        });
      });
    } else if (outer.depth == 0 || inner.stride[0][inner.depth - 1] <= outer.stride[0][outer.depth - 1] ||
               outer.stride[0][outer.depth - 1] == 0) {  // rows are reduced
      const loop_nest<tensors> rest = without_last(inner);
      with_walk(inner, false, [&]<walk W>(const long* strides) {
        rows_of(outer.count(), [&, this](long n) {
          long base[tensors] = {}, index[max_factors] = {};
          outer.locate(n, c, base, index);
          wide sum = identity_of<wide>(R);
          for (long m = 0, all = rest.count(); m < all; ++m) {
            long at[tensors];
            for (int t = 0; t < tensors; ++t) at[t] = base[t];
            rest.locate(m, c, at, index);
            sum = combine<R>(sum, along_reduced<W, R>(at, strides, row_size(inner), index, row_factor(inner)));
          }
          result.set(base[N], sum);
        });
      });
    } else {  // columns are reduced: accumulate whole rows of the result
      const loop_nest<tensors> rest = without_last(outer);
      for (long i = 0, all = outer.count(); i < all; ++i) result.set(i, identity_of<wide>(R));
      with_walk(outer, true, [&]<walk W>(const long* strides) {
        rows_of(rest.count(), [&, this](long n) {
          long base[tensors] = {}, index[max_factors] = {};
          rest.locate(n, c, base, index);
          for (long m = 0, all = inner.count(); m < all; ++m) {
            long at[tensors];
            for (int t = 0; t < tensors; ++t) at[t] = base[t];
            inner.locate(m, c, at, index);
            along_result<W, R, true>(at, strides, row_size(outer), index, row_factor(outer));
          }
        });
      });
    }
  }

  // One-hot factors: only the table position the index names takes part. In a result it is where the row is added.
  void run_selected(int table_factor) const {
    const rule& r = c.r();
    loop_nest<tensors> loops;
    const call_tensor* all[tensors];
    for (int i = 0; i < N; ++i) all[i] = &c.operand[i];
    all[N] = &c.result[0];
    int row = -1;  // the row runs along the last factor that neither the index nor the table position uses
    for (int f = 0; f < r.factors.size(); ++f)
      if (f != table_factor && c.operand[Op::index_operand].stride[f] == 0 && c.size[f] > 1 &&
          (row < 0 || c.operand[0].stride[f] < c.operand[0].stride[row]))
        row = f;
    for (int f = 0; f < r.factors.size(); ++f)
      if (f != table_factor && f != row) loops.add(c, f, all);
    long strides[tensors] = {};
    bool unit = true;
    for (int t = 0; t < tensors; ++t) {
      strides[t] = row < 0 ? 1 : all[t]->stride[row];
      unit = unit && (t == Op::index_operand || strides[t] == 1);
    }
    long size = 1;
    for (signed char f : r.results[0].factors) size *= c.size[f];
    for (long i = 0; i < size; ++i) result.set(i, wide(0));
    const long n = row < 0 ? 1 : c.size[row];
    for (long m = 0, count = loops.count(); m < count; ++m) {
      long at[tensors] = {}, index[max_factors] = {};
      loops.locate(m, c, at, index);
      const long position = indices[at[Op::index_operand]] - c.start[table_factor];
      if (position < 0 || position >= c.size[table_factor]) continue;
      for (int t = 0; t < tensors; ++t) at[t] += position * all[t]->stride[table_factor];
      if (unit) selected_row<true>(at, strides, n);
      else selected_row<false>(at, strides, n);
    }
  }
  template <bool Unit>
  void selected_row(const long* at, const long* strides, long n) const {
    const numbers<T> out = result + at[N];
    for (long k = 0; k < n; ++k) {
      const long where = Unit ? k : k * strides[N];
      out.set(where, out[where] + selected<Unit>(at, strides, k, std::make_index_sequence<N - 1>{},
                                                 std::make_index_sequence<Scalars>{}));
    }
  }
  template <bool Unit, std::size_t... I, std::size_t... S>
  wide selected(const long* at, const long* strides, long k, std::index_sequence<I...>,
                std::index_sequence<S...>) const {
    // The index operand is not passed on; the operands after it move up by one.
    return Op::apply(operand[I + (static_cast<int>(I) >= Op::index_operand)]
                            [at[I + (static_cast<int>(I) >= Op::index_operand)] +
                             (Unit ? k : k * strides[I + (static_cast<int>(I) >= Op::index_operand)])]...,
                     scalar[S]...);
  }
};

}  // namespace detail

/// Runs a map operator.
template <class Op, class T>
void run_map(const call& c) {
  using sig = signature<Op>;
  const detail::map_kernel<Op, T, sig::operands, Op::scalars, sig::coordinates> kernel(c);
  if constexpr (sig::selects) {
    for (int f = 0; f < c.factors; ++f)
      if (c.r().factors[f].one_hot) return kernel.run_selected(f);
  } else {
    kernel.template run<sig::combine>();
  }
}

}  // namespace cfp::host
