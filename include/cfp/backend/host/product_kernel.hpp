// Contractions of two operands, left to BLAS.
#pragma once

#include <cfp/backend/numbers.hpp>
#include <cfp/program/matrix_product.hpp>

#include <cblas.h>

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

}  // namespace detail

/// result = sum over shared factors of operand 0 times operand 1.
template <class T>
  requires(!is_narrow<T>)
void run_product(const call& c) {
  const matrix_product p = as_matrices(c);
  const T* const a = static_cast<const T*>(c.operand[p.swapped ? 1 : 0].data);
  const T* const b = static_cast<const T*>(c.operand[p.swapped ? 0 : 1].data);
  T* const out = static_cast<T*>(c.result[0].data);
  for (long i = 0, repeats = p.repeats(); i < repeats; ++i) {
    long at[3];
    const T beta = p.locate(i, at) ? T(1) : T(0);
    detail::gemm(p.transposed[0], p.transposed[1], p.rows, p.columns, p.sums, a + at[0], p.leading[0], b + at[1],
                 p.leading[1], beta, out + at[2], p.leading[2]);
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
