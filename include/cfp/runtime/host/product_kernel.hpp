// Contractions of two operands, left to BLAS: factors are sorted into rows, columns, sums and batches.
#pragma once

#include <cfp/runtime/host/numbers.hpp>

#include <cblas.h>

#include <utility>
#include <vector>

namespace cfp::inline v0_1::host {

namespace detail {

inline void gemm(bool ta, bool tb, long m, long n, long k, const float* a, long lda, const float* b, long ldb,
                 float beta, float* c, long ldc) {
  cblas_sgemm(CblasRowMajor, ta ? CblasTrans : CblasNoTrans, tb ? CblasTrans : CblasNoTrans, static_cast<int>(m),
              static_cast<int>(n), static_cast<int>(k), 1.0f, a, static_cast<int>(lda), b, static_cast<int>(ldb), beta,
              c, static_cast<int>(ldc));
}
inline void gemm(bool ta, bool tb, long m, long n, long k, const double* a, long lda, const double* b, long ldb,
                 double beta, double* c, long ldc) {
  cblas_dgemm(CblasRowMajor, ta ? CblasTrans : CblasNoTrans, tb ? CblasTrans : CblasNoTrans, static_cast<int>(m),
              static_cast<int>(n), static_cast<int>(k), 1.0, a, static_cast<int>(lda), b, static_cast<int>(ldb), beta,
              c, static_cast<int>(ldc));
}

// Factors that stand in the same two tensors, merged from the inside as far as both walk evenly.
struct merged {
  long size = 1;
  long stride[3] = {1, 1, 1};
  list<int, max_factors> rest;  // factors that did not merge: loops around
};

inline merged merge(const call& c, const list<int, max_factors>& factors, const call_tensor* const* t, int x, int y) {
  merged out;
  bool open = true;
  for (int i = factors.size() - 1; i >= 0; --i) {
    const int f = factors[i];
    if (c.size[f] == 1) continue;
    const bool first = out.size == 1;
    const bool even = t[x]->stride[f] == out.stride[x] * out.size && t[y]->stride[f] == out.stride[y] * out.size;
    if (open && (first || even)) {
      if (first)
        for (int k = 0; k < 3; ++k) out.stride[k] = t[k]->stride[f];
      out.size *= c.size[f];
    } else {
      open = false;
      out.rest.push(f);
    }
  }
  return out;
}

inline bool has_unit(const merged& x, const merged& y, int tensor) {
  return x.size == 1 || y.size == 1 || x.stride[tensor] == 1 || y.stride[tensor] == 1;
}

}  // namespace detail

/// result = sum over shared factors of operand 0 times operand 1.
template <class T>
  requires(!is_narrow<T>)
void run_product(const call& c) {
  const rule& r = c.r();
  const call_tensor* t[3] = {&c.operand[0], &c.operand[1], &c.result[0]};
  list<int, max_factors> rows, columns, sums, loops;
  const auto sorted = [&](const pattern& order, auto&& wanted, list<int, max_factors>& into) {
    for (signed char f : order.factors)
      if (wanted(f)) into.push(f);
  };
  const auto in = [&](int tensor, int f) {
    return tensor < 2 ? r.operands[tensor].dim_of(f) >= 0 : r.results[0].dim_of(f) >= 0;
  };
  sorted(r.results[0], [&](int f) { return in(0, f) && !in(1, f); }, rows);
  sorted(r.results[0], [&](int f) { return in(1, f) && !in(0, f); }, columns);
  sorted(r.results[0], [&](int f) { return in(0, f) && in(1, f); }, loops);
  sorted(r.operands[0], [&](int f) { return in(1, f) && !in(2, f); }, sums);
  detail::merged m = detail::merge(c, rows, t, 0, 2), n = detail::merge(c, columns, t, 1, 2);
  const detail::merged k = detail::merge(c, sums, t, 0, 1);
  // A matrix that no direction walks by one becomes vectors, which may have any stride.
  if (!detail::has_unit(m, k, 0) || !detail::has_unit(m, n, 2)) m = {1, {1, 1, 1}, rows};
  if (!detail::has_unit(k, n, 1)) n = {1, {1, 1, 1}, columns};
  for (int f : m.rest) loops.push(f);
  for (int f : n.rest) loops.push(f);
  const int plain = loops.size();  // from here on, loops add to the result
  for (int f : k.rest) loops.push(f);

  const T* a0 = static_cast<const T*>(t[0]->data);
  const T* b0 = static_cast<const T*>(t[1]->data);
  T* c0 = static_cast<T*>(t[2]->data);
  // Row-major, each matrix with one unit stride; a result whose rows are the unit ones is computed transposed.
  const bool swapped = n.size > 1 && n.stride[2] != 1;
  const long am = m.stride[0], ak = k.stride[0], bk = k.stride[1], bn = n.stride[1];
  const bool a_plain = k.size == 1 || ak == 1, b_plain = n.size == 1 || bn == 1;
  const auto leading = [](long outer_stride, long outer_size, long inner_size) {
    return outer_size > 1 ? outer_stride : (inner_size > 1 ? inner_size : 1);
  };
  const long lda = a_plain ? leading(am, m.size, k.size) : leading(ak, k.size, m.size);
  const long ldb = b_plain ? leading(bk, k.size, n.size) : leading(bn, n.size, k.size);
  const long ldc = swapped ? leading(n.stride[2], n.size, m.size) : leading(m.stride[2], m.size, n.size);
  long count = 1;
  for (int f : loops) count *= c.size[f];
  for (long i = 0; i < count; ++i) {
    long rest = i, at[3] = {0, 0, 0};
    bool adds = false;
    for (int l = loops.size() - 1; l >= 0; --l) {
      const int f = loops[l];
      const long q = rest % c.size[f];
      rest /= c.size[f];
      for (int x = 0; x < 3; ++x) at[x] += q * t[x]->stride[f];
      if (l >= plain && q > 0) adds = true;
    }
    const T beta = adds ? T(1) : T(0);
    if (swapped)
      detail::gemm(b_plain, a_plain, n.size, m.size, k.size, b0 + at[1], ldb, a0 + at[0], lda, beta, c0 + at[2], ldc);
    else
      detail::gemm(!a_plain, !b_plain, m.size, n.size, k.size, a0 + at[0], lda, b0 + at[1], ldb, beta, c0 + at[2], ldc);
  }
}

/// The same on numbers stored in fewer bits: multiplied and added up in float.
template <class T>
  requires is_narrow<T>
void run_product(const call& c) {
  thread_local std::vector<float> memory[3];
  call in_float = c;
  call_tensor* const given[3] = {&in_float.operand[0], &in_float.operand[1], &in_float.result[0]};
  const pattern* const patterns[3] = {&c.r().operands[0], &c.r().operands[1], &c.r().results[0]};
  long count[3] = {1, 1, 1};
  for (int t = 0; t < 3; ++t) {
    for (signed char f : patterns[t]->factors) count[t] *= c.size[f];
    if (given[t]->wide) continue;
    memory[t].resize(static_cast<std::size_t>(count[t]));
    if (t < 2)
      for (long i = 0; i < count[t]; ++i) memory[t][static_cast<std::size_t>(i)] = numbers<T>(*given[t])[i];
    given[t]->data = memory[t].data();
  }
  run_product<float>(in_float);
  if (!c.result[0].wide)
    for (long i = 0; i < count[2]; ++i) numbers<T>(c.result[0]).set(i, memory[2][static_cast<std::size_t>(i)]);
}

}  // namespace cfp::host
