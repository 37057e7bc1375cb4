// The loops around the rows of a map kernel: the same for all operators.
#pragma once

#include <cfp/program/loop_nest.hpp>

#if !defined(THRUST_DEVICE_SYSTEM) && !defined(__CUDACC__)  // else Thrust asks for CUDA's headers
#define THRUST_DEVICE_SYSTEM THRUST_DEVICE_SYSTEM_CPP
#endif

#include <thrust/execution_policy.h>
#include <thrust/for_each.h>
#include <thrust/iterator/counting_iterator.h>

#include <limits>
#include <vector>

namespace cfp::inline v0_1::host {

namespace detail {

/// How tensors walk along a row: every one by 1, as the operator's rule says (1 where the operand has the last factor,
/// else 0), or by strides known only now.
enum class walk { unit, ruled, strided };

/// The tensors of a call, the result last, and how they walk along a row.
template <class T, int Tensors>
struct map_rows {
  const call& c;
  const call_tensor* tensor[Tensors];
  T scalar[8] = {};
  long size = 1;      ///< of a row
  int factor = -1;    ///< that it runs along
  bool cuts = false;  ///< positions that a functor reads are several factors each
  long stride[Tensors] = {};

  map_rows(const call& from, int scalars) : c(from), cuts(from.r().cuts_coordinates()) {
    for (int i = 0; i + 1 < Tensors; ++i) tensor[i] = &c.operand[i];
    tensor[Tensors - 1] = &c.result[0];
    for (int s = 0; s < scalars; ++s) scalar[s] = static_cast<T>(c.op->scalars[s]);
  }
  T* result() const { return static_cast<T*>(tensor[Tensors - 1]->data); }

  /// Makes the innermost loop of a nest the row, and returns what is around it.
  loop_nest<Tensors> take_row(const loop_nest<Tensors>& n, bool result_moves) {
    loop_nest<Tensors> rest = n;
    for (int t = 0; t < Tensors; ++t) stride[t] = t + 1 < Tensors || result_moves ? 1 : 0;
    if (n.depth == 0) return rest;
    --rest.depth;
    size = n.size[rest.depth];
    factor = n.factor[rest.depth];
    for (int t = 0; t < Tensors; ++t) stride[t] = n.stride[t][rest.depth];
    return rest;
  }
};

/// What an operator does along the row that starts at offsets `at`, where factors have the indices `index`.
template <class T, int Tensors>
struct row_loops {
  using rows = map_rows<T, Tensors>;
  void (*write)(const rows&, const long* at, const long* index) = nullptr;  ///< result[k] = f(k)
  void (*add)(const rows&, const long* at, const long* index) = nullptr;    ///< combines result[k] with f(k)
  T (*reduce)(const rows&, const long* at, const long* index) = nullptr;    ///< all f(k) combined
};

/// The same for each way of walking.
template <class T, int Tensors>
struct map_loops {
  reduction combine = reduction::sum;
  int index_operand = -1;
  row_loops<T, Tensors> unit, strided, ruled;
  bool along_row[Tensors] = {};  ///< which operands move by 1 if they walk as ruled

  const row_loops<T, Tensors>& of(const map_rows<T, Tensors>& m, bool result_moves) const {
    bool is_unit = true, is_ruled = ruled.write || ruled.add;
    for (int t = 0; t < Tensors; ++t) {
      if (t + 1 == Tensors && !result_moves) continue;
      is_unit = is_unit && m.stride[t] == 1;
      is_ruled = is_ruled && m.stride[t] == (t + 1 == Tensors || along_row[t] ? 1 : 0);
    }
    return is_unit ? unit : is_ruled ? ruled : strided;
  }
};

template <class T>
T identity_of(reduction r) {
  if (r == reduction::max) return -std::numeric_limits<T>::infinity();
  if (r == reduction::min) return std::numeric_limits<T>::infinity();
  return T(0);
}
template <class T>
T combine(reduction r, T a, T b) {
  if (r == reduction::max) return a > b ? a : b;
  if (r == reduction::min) return a < b ? a : b;
  return a + b;
}

template <class F>
void each_row(long n, const F& f) {
  thrust::for_each_n(thrust::cpp::par, thrust::counting_iterator<long>(0), n, f);
}

template <class T, int Tensors>
void run_elementwise(map_rows<T, Tensors>& m, const map_loops<T, Tensors>& loops, const loop_nest<Tensors>& outer) {
  const loop_nest<Tensors> rest = m.take_row(outer, true);
  const auto write = loops.of(m, true).write;
  each_row(rest.count(), [&](long n) {
    long at[Tensors] = {}, index[max_factors] = {};
    rest.locate(n, m.c, at, index);
    write(m, at, index);
  });
}

// Rows are reduced.
template <class T, int Tensors>
void reduce_rows(map_rows<T, Tensors>& m, const map_loops<T, Tensors>& loops, const loop_nest<Tensors>& outer,
                 const loop_nest<Tensors>& inner) {
  const loop_nest<Tensors> rest = m.take_row(inner, false);
  const auto reduce = loops.of(m, false).reduce;
  each_row(outer.count(), [&](long n) {
    long base[Tensors] = {}, index[max_factors] = {};
    outer.locate(n, m.c, base, index);
    T sum = identity_of<T>(loops.combine);
    for (long i = 0, all = rest.count(); i < all; ++i) {
      long at[Tensors];
      for (int t = 0; t < Tensors; ++t) at[t] = base[t];
      rest.locate(i, m.c, at, index);
      sum = combine(loops.combine, sum, reduce(m, at, index));
    }
    m.result()[base[Tensors - 1]] = sum;
  });
}

/// Combines a row of the result with f(k); of an operator that has no loop for it (it stands in a gradient, with
/// another rule than its own), by way of a row beside it.
template <class T, int Tensors>
class row_adder {
 public:
  row_adder(const map_rows<T, Tensors>& m, const map_loops<T, Tensors>& loops)
      : m_(m), beside_(m), combine_(loops.combine), add_(loops.of(m, true).add) {
    if (add_) return;
    row_.resize(static_cast<std::size_t>(m.size));
    tensor_.data = row_.data();
    beside_.tensor[Tensors - 1] = &tensor_;
    beside_.stride[Tensors - 1] = 1;
    write_ = loops.of(beside_, true).write;
  }
  row_adder(const row_adder&) = delete;
  void operator()(long* at, const long* index) {
    if (add_) return add_(m_, at, index);
    T* const out = m_.result() + at[Tensors - 1];
    at[Tensors - 1] = 0;
    write_(beside_, at, index);
    for (long k = 0; k < m_.size; ++k) {
      T& x = out[k * m_.stride[Tensors - 1]];
      x = combine(combine_, x, row_[static_cast<std::size_t>(k)]);
    }
  }

 private:
  const map_rows<T, Tensors>& m_;
  map_rows<T, Tensors> beside_;
  reduction combine_;
  decltype(row_loops<T, Tensors>::add) add_, write_ = nullptr;
  call_tensor tensor_;
  std::vector<T> row_;
};

// Columns are reduced: whole rows of the result are added up.
template <class T, int Tensors>
void reduce_columns(map_rows<T, Tensors>& m, const map_loops<T, Tensors>& loops, const loop_nest<Tensors>& outer,
                    const loop_nest<Tensors>& inner) {
  const loop_nest<Tensors> rest = m.take_row(outer, true);
  for (long i = 0, all = outer.count(); i < all; ++i) m.result()[i] = identity_of<T>(loops.combine);
  each_row(rest.count(), [&](long n) {
    row_adder<T, Tensors> add(m, loops);
    long base[Tensors] = {}, index[max_factors] = {};
    rest.locate(n, m.c, base, index);
    for (long i = 0, all = inner.count(); i < all; ++i) {
      long at[Tensors];
      for (int t = 0; t < Tensors; ++t) at[t] = base[t];
      inner.locate(i, m.c, at, index);
      add(at, index);
    }
  });
}

// One-hot factors: only the table position the index names takes part. In a result it is where the row is added.
template <class T, int Tensors>
void run_selected(map_rows<T, Tensors>& m, const map_loops<T, Tensors>& loops, int table) {
  const call& c = m.c;
  const call_tensor& index_tensor = *m.tensor[loops.index_operand];
  int row = -1;  // the row runs along the last factor that neither the index nor the table position uses
  for (int f = 0; f < c.factors; ++f)
    if (f != table && index_tensor.stride[f] == 0 && c.size[f] > 1 &&
        (row < 0 || c.operand[0].stride[f] < c.operand[0].stride[row]))
      row = f;
  loop_nest<Tensors> nest;
  for (int f = 0; f < c.factors; ++f)
    if (f != table && f != row) nest.add(c, f, m.tensor);
  if (row >= 0) nest.add(c, row, m.tensor);
  loop_nest<Tensors> rest = nest;
  if (row >= 0) rest = m.take_row(nest, true);
  m.stride[loops.index_operand] = 1;  // one position for all of the row
  const auto add = loops.of(m, true).add;
  long size = 1;
  for (signed char f : c.r().results[0].factors) size *= c.size[f];
  for (long i = 0; i < size; ++i) m.result()[i] = T(0);
  for (long i = 0, all = rest.count(); i < all; ++i) {
    long at[Tensors] = {}, index[max_factors] = {};
    rest.locate(i, c, at, index);
    const auto* const named = static_cast<const std::int32_t*>(index_tensor.data) + at[loops.index_operand];
    const long position = *named - c.start[table];
    if (position < 0 || position >= c.size[table]) continue;
    for (int t = 0; t < Tensors; ++t) at[t] += position * m.tensor[t]->stride[table];
    add(m, at, index);
  }
}

template <class T, int Tensors>
void run(map_rows<T, Tensors>& m, const map_loops<T, Tensors>& loops) {
  const rule& r = m.c.r();
  if (!loops.unit.write && !loops.unit.reduce) {  // what an index selects
    for (int f = 0; f < m.c.factors; ++f)
      if (r.factors[f].one_hot) return run_selected(m, loops, f);
    return;
  }
  loop_nest<Tensors> outer, inner;
  for (signed char f : r.results[0].factors) outer.add(m.c, f, m.tensor);
  for (int f = 0; f < r.factors.size(); ++f)  // reduced factors, in the order the operands hold them
    if (r.results[0].dim_of(static_cast<signed char>(f)) < 0) inner.add(m.c, f, m.tensor);
  inner.sort();
  outer.collapse(r);
  inner.collapse(r);
  if (loops.unit.write && inner.depth == 0) run_elementwise(m, loops, outer);
  else if (loops.unit.reduce && inner.depth > 0 &&
           (outer.depth == 0 || outer.stride[0][outer.depth - 1] == 0 ||
            inner.stride[0][inner.depth - 1] <= outer.stride[0][outer.depth - 1]))
    reduce_rows(m, loops, outer, inner);
  else reduce_columns(m, loops, outer, inner);
}

}  // namespace detail

}  // namespace cfp::host
