// A stand-in for the functions of cuBLASLt that are called, over the streams of stand_in_cuda.cpp. What it refuses is
// what cuBLASLt refuses: operands of two types, a narrow result of wide operands, a bias of another type than the
// result's. Its algorithms differ in the order of their sums, so that ranks which do not agree in one show.
#include "stand_in.hpp"

#include <cfp/op/bf16.hpp>
#include <cfp/op/catalogue.hpp>
#include <cfp/op/fp16.hpp>
#include <cfp/op/op.hpp>

#include <cublasLt.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <vector>

namespace {

using attributes = std::map<int, std::vector<char>>;

struct matrix {
  cudaDataType_t type{};
  std::uint64_t rows = 0, columns = 0;
  std::int64_t leading = 0, apart = 0;
  std::int32_t count = 1;
};

template <class T>
T get(const attributes& a, int which, T otherwise = {}) {
  const auto found = a.find(which);
  if (found != a.end()) std::memcpy(&otherwise, found->second.data(), sizeof otherwise);
  return otherwise;
}
void set(attributes& a, int which, const void* data, std::size_t bytes) {
  const char* const from = static_cast<const char*>(data);
  a[which].assign(from, from + bytes);
}

template <class Handle>
attributes& of(Handle h) {
  return *reinterpret_cast<attributes*>(h);
}
const matrix& of(cublasLtMatrixLayout_t h) { return *reinterpret_cast<const matrix*>(h); }

float read(const void* at, std::int64_t i, cudaDataType_t type) {
  if (type == CUDA_R_32F) return static_cast<const float*>(at)[i];
  if (type == CUDA_R_16BF) return static_cast<float>(static_cast<const cfp::bf16*>(at)[i]);
  return static_cast<float>(static_cast<const cfp::fp16*>(at)[i]);
}
void write(void* at, std::int64_t i, cudaDataType_t type, float x) {
  if (type == CUDA_R_32F) static_cast<float*>(at)[i] = x;
  else if (type == CUDA_R_16BF) static_cast<cfp::bf16*>(at)[i] = cfp::bf16(x);
  else static_cast<cfp::fp16*>(at)[i] = cfp::fp16(x);
}

std::vector<float> numbers(const matrix& m, const void* at, std::int32_t n, bool transposed) {
  const std::uint64_t rows = transposed ? m.columns : m.rows, columns = transposed ? m.rows : m.columns;
  std::vector<float> out;
  out.reserve(rows * columns);
  for (std::uint64_t r = 0; r < rows; ++r)
    for (std::uint64_t c = 0; c < columns; ++c) {
      const std::uint64_t row = transposed ? c : r, column = transposed ? r : c;
      out.push_back(read(
          at, n * m.apart + static_cast<std::int64_t>(column) * m.leading + static_cast<std::int64_t>(row), m.type));
    }
  return out;
}

bool adds_bias(cublasLtEpilogue_t e) {
  return e == CUBLASLT_EPILOGUE_BIAS || e == CUBLASLT_EPILOGUE_GELU_BIAS || e == CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
}
bool has_aux(cublasLtEpilogue_t e) { return e == CUBLASLT_EPILOGUE_GELU_AUX_BIAS || e == CUBLASLT_EPILOGUE_DGELU; }

struct multiplication {
  attributes how;
  matrix a, b, c, d;
  const void *at_a, *at_b, *at_c;
  void* at_d;
  float alpha, beta;
  std::uint64_t algorithm;

  void operator()() const {
    const bool ta = get<cublasOperation_t>(how, CUBLASLT_MATMUL_DESC_TRANSA) == CUBLAS_OP_T,
               tb = get<cublasOperation_t>(how, CUBLASLT_MATMUL_DESC_TRANSB) == CUBLAS_OP_T;
    const epilogue then(how);
    const std::uint64_t sums = ta ? a.rows : a.columns;
    for (std::int32_t n = 0; n < d.count; ++n) {
      const std::vector<float> left = numbers(a, at_a, n, ta), right = numbers(b, at_b, n, !tb);
      for (std::uint64_t column = 0; column < d.columns; ++column)
        for (std::uint64_t row = 0; row < d.rows; ++row) {
          float x = 0;
          for (std::uint64_t i = 0; i < sums; ++i) {
            const std::uint64_t k = algorithm % 2 == 0 ? i : sums - 1 - i;
            x += left[row * sums + k] * right[column * sums + k];
          }
          store(then, x, n, static_cast<std::int64_t>(row), static_cast<std::int64_t>(column));
        }
      if (then.kind == CUBLASLT_EPILOGUE_BGRADA) sum(then, left, d.rows, sums);
      if (then.kind == CUBLASLT_EPILOGUE_BGRADB) sum(then, right, d.columns, sums);
    }
  }

 private:
  struct epilogue {
    cublasLtEpilogue_t kind;
    void* bias;
    void* aux;
    std::int64_t aux_leading;

    explicit epilogue(const attributes& of)
        : kind(get<cublasLtEpilogue_t>(of, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_DEFAULT)),
          bias(get<void*>(of, CUBLASLT_MATMUL_DESC_BIAS_POINTER)),
          aux(get<void*>(of, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER)),
          aux_leading(get<std::int64_t>(of, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD)) {}
  };

  void store(const epilogue& then, float x, std::int32_t n, std::int64_t row, std::int64_t column) const {
    x = alpha * x + (beta == 0 ? 0 : beta * read(at_c, n * c.apart + column * c.leading + row, c.type));
    if (adds_bias(then.kind)) x += read(then.bias, row, d.type);
    if (then.kind == CUBLASLT_EPILOGUE_DGELU)
      x = cfp::slope<cfp::gelu_t, 0>::apply(x, read(then.aux, column * then.aux_leading + row, d.type));
    if (then.kind == CUBLASLT_EPILOGUE_GELU_AUX_BIAS) write(then.aux, column * then.aux_leading + row, d.type, x);
    if (then.kind == CUBLASLT_EPILOGUE_GELU_AUX_BIAS || then.kind == CUBLASLT_EPILOGUE_GELU_BIAS)
      x = cfp::gelu_t::apply(x);
    write(at_d, n * d.apart + column * d.leading + row, d.type, x);
  }
  void sum(const epilogue& then, const std::vector<float>& of, std::uint64_t count, std::uint64_t sums) const {
    for (std::uint64_t i = 0; i < count; ++i) {
      float all = 0;
      for (std::uint64_t k = 0; k < sums; ++k) all += of[i * sums + k];
      write(then.bias, static_cast<std::int64_t>(i), d.type, all);
    }
  }
};

bool is_supported(const attributes& how, const matrix& a, const matrix& b, const matrix& d) {
  if (a.type != b.type || (d.type != a.type && d.type != CUDA_R_32F)) return false;
  const auto epilogue = get<cublasLtEpilogue_t>(how, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_DEFAULT);
  if (epilogue == CUBLASLT_EPILOGUE_DEFAULT) return true;
  if (get<cudaDataType_t>(how, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, d.type) != d.type) return false;
  return !has_aux(epilogue) || get<std::int64_t>(how, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD) % 8 == 0;
}

}  // namespace

extern "C" {

std::size_t cublasLtGetVersion() { return CUBLAS_VERSION; }
const char* cublasLtGetStatusString(cublasStatus_t) { return "as the stand-in says"; }
cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  *handle = reinterpret_cast<cublasLtHandle_t>(new attributes);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  delete &of(handle);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* made, cublasComputeType_t, cudaDataType_t) {
  *made = reinterpret_cast<cublasLtMatmulDesc_t>(new attributes);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t x) {
  delete &of(x);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t x, cublasLtMatmulDescAttributes_t which,
                                              const void* data, std::size_t bytes) {
  set(of(x), which, data, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* made, cudaDataType_t type, std::uint64_t rows,
                                          std::uint64_t columns, std::int64_t leading) {
  *made = reinterpret_cast<cublasLtMatrixLayout_t>(new matrix{type, rows, columns, leading, 0, 1});
  return leading >= static_cast<std::int64_t>(rows) ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t x) {
  delete &of(x);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t x, cublasLtMatrixLayoutAttribute_t which,
                                                const void* data, std::size_t bytes) {
  matrix& m = *reinterpret_cast<matrix*>(x);
  if (which == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT) std::memcpy(&m.count, data, bytes);
  else if (which == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET) std::memcpy(&m.apart, data, bytes);
  else return CUBLAS_STATUS_NOT_SUPPORTED;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* made) {
  *made = reinterpret_cast<cublasLtMatmulPreference_t>(new attributes);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t x) {
  delete &of(x);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t x,
                                                    cublasLtMatmulPreferenceAttributes_t which, const void* data,
                                                    std::size_t bytes) {
  set(of(x), which, data, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

// Three algorithms, that take no less aligned places than was said.
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t how, cublasLtMatrixLayout_t a,
                                              cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t,
                                              cublasLtMatrixLayout_t d, cublasLtMatmulPreference_t preferred, int most,
                                              cublasLtMatmulHeuristicResult_t* results, int* found) {
  *found = 0;
  if (!is_supported(of(how), of(a), of(b), of(d))) return CUBLAS_STATUS_NOT_SUPPORTED;
  for (; *found < std::min(most, 3); ++*found) {
    cublasLtMatmulHeuristicResult_t& r = results[*found];
    r = {};
    r.algo.data[0] = static_cast<std::uint64_t>(*found);
    for (int x = 0; x < 4; ++x)
      r.algo.data[1 + x] =
          get<std::uint32_t>(of(preferred), CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES + x, std::uint32_t{256});
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t how, const void* alpha, const void* at_a,
                              cublasLtMatrixLayout_t a, const void* at_b, cublasLtMatrixLayout_t b, const void* beta,
                              const void* at_c, cublasLtMatrixLayout_t c, void* at_d, cublasLtMatrixLayout_t d,
                              const cublasLtMatmulAlgo_t* algorithm, void*, std::size_t, cudaStream_t stream) {
  const void* const at[4] = {at_a, at_b, at_c, at_d};
  for (int x = 0; x < 4; ++x)
    if (reinterpret_cast<std::uintptr_t>(at[x]) % algorithm->data[1 + x] != 0) ++stand_in::seen.misuses;
  if (!is_supported(of(how), of(a), of(b), of(d))) return CUBLAS_STATUS_NOT_SUPPORTED;
  stand_in::later(
      stream, multiplication{of(how), of(a), of(b), of(c), of(d), at_a, at_b, at_c, at_d,
                             *static_cast<const float*>(alpha), *static_cast<const float*>(beta), algorithm->data[0]});
  return CUBLAS_STATUS_SUCCESS;
}

}  // extern "C"
