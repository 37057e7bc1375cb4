// Contractions of two operands, left to BLAS.
#pragma once

#include <cfp/program/matrix_product.hpp>

#include <cblas.h>

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

}  // namespace cfp::host
