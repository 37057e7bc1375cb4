// Matrix products by cuBLASLt, what follows them included (long: one library, whose handles stay here). Of each shape
// its suggestions are timed before anything runs, and the fastest is remembered.
#pragma once

#include <cfp/backend/cuda/product/blas_choices.hpp>
#include <cfp/backend/cuda/product/epilogue.hpp>
#include <cfp/communicator/nccl/cuda_error.hpp>
#include <cfp/core/device_error.hpp>
#include <cfp/op/bf16.hpp>
#include <cfp/op/fp16.hpp>
#include <cfp/program/matrix_product.hpp>

#include <cublasLt.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace cfp::inline v0_1::cuda {

namespace detail {

inline void blas_check(cublasStatus_t s, const char* call) {
  if (s != CUBLAS_STATUS_SUCCESS) throw device_error(std::string(call) + " failed: " + cublasLtGetStatusString(s));
}

struct blas_delete {
  void operator()(cublasLtHandle_t x) const { cublasLtDestroy(x); }
  void operator()(cublasLtMatmulDesc_t x) const { cublasLtMatmulDescDestroy(x); }
  void operator()(cublasLtMatrixLayout_t x) const { cublasLtMatrixLayoutDestroy(x); }
  void operator()(cublasLtMatmulPreference_t x) const { cublasLtMatmulPreferenceDestroy(x); }
};
template <class Handle>
using blas_object = std::unique_ptr<std::remove_pointer_t<Handle>, blas_delete>;

template <class T>
constexpr cudaDataType_t blas_type(bool wide) {
  if (wide || std::is_same_v<T, float>) return CUDA_R_32F;
  return std::is_same_v<T, bf16> ? CUDA_R_16BF : CUDA_R_16F;
}

/// A column-major matrix of a batch.
inline blas_object<cublasLtMatrixLayout_t> blas_matrix(cudaDataType_t type, long rows, long columns, long leading,
                                                       long count, long apart) {
  cublasLtMatrixLayout_t made = nullptr;
  blas_check(cublasLtMatrixLayoutCreate(&made, type, static_cast<std::uint64_t>(rows),
                                        static_cast<std::uint64_t>(columns), std::max(leading, rows)),
             "cublasLtMatrixLayoutCreate");
  blas_object<cublasLtMatrixLayout_t> out(made);
  const auto batch = static_cast<std::int32_t>(count);
  const std::int64_t stride = apart;
  blas_check(cublasLtMatrixLayoutSetAttribute(made, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch, sizeof batch),
             "cublasLtMatrixLayoutSetAttribute");
  blas_check(
      cublasLtMatrixLayoutSetAttribute(made, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof stride),
      "cublasLtMatrixLayoutSetAttribute");
  return out;
}

}  // namespace detail

class matrix_library {
 public:
  static constexpr std::size_t workspace_bytes = 32 << 20;  // what cuBLAS takes on Hopper
  static constexpr int suggestions = 32;                    ///< at most, timed for each shape

  /// One product made ready: on these places, over and over.
  class product {
   public:
    product() = default;
    explicit operator bool() const { return made_ != nullptr; }
    /// By what was chosen; by the first suggestion, if nothing was.
    void run(cudaStream_t stream) const;
    /// The same by one of the suggestions, for measuring. Returns false if there are no more.
    bool run_suggestion(cudaStream_t stream, int which) const;

   private:
    friend class matrix_library;
    struct state;
    std::shared_ptr<state> made_;
  };

  matrix_library() {
    cublasLtHandle_t handle = nullptr;
    detail::blas_check(cublasLtCreate(&handle), "cublasLtCreate");
    handle_.reset(handle);
    void* memory = nullptr;
    cfp::detail::cuda_check(cudaMalloc(&memory, workspace_bytes), "cudaMalloc");
    workspace_.reset(memory);
  }

  /// A contraction of numbers stored as T. Gives none if cuBLASLt cannot do the epilogue; throws device_error if
  /// it cannot do the product alone.
  template <class T>
  product prepare(const call& c, const epilogue& e);

  /// Times the suggestions of what was made ready since, where it is, which writes its results; wait() returns when the
  /// stream has done all.
  void choose(cudaStream_t stream, const std::function<void()>& wait);
  /// Of whose suggestions the choices are.
  static std::string name() { return "cuBLASLt " + std::to_string(cublasLtGetVersion()); }
  /// What is chosen by now.
  std::vector<algorithm_choice> choices() const { return choices_.made(); }
  /// Chooses the same, for products that it has, or is asked for later.
  void choose(std::span<const algorithm_choice> others) { choices_.take(others); }

 private:
  struct cuda_delete {
    void operator()(void* p) const { cudaFree(p); }
  };

  /// What distinguishes the epilogue from others; nothing if the library has none such.
  template <class T>
  static std::vector<int> set_epilogue(cublasLtMatmulDesc_t what, const matrix_product& p, const epilogue& e,
                                       bool wide_result);

  detail::blas_object<cublasLtHandle_t> handle_;
  std::unique_ptr<void, cuda_delete> workspace_;
  blas_choices choices_;
  std::vector<std::weak_ptr<product::state>> made_;  // since the last choice
};

/// A place in a stream, whose time is noted.
class timing_event {
 public:
  timing_event() {
    cudaEvent_t e = nullptr;
    cfp::detail::cuda_check(cudaEventCreate(&e), "cudaEventCreate");
    made_.reset(e);
  }
  void record(cudaStream_t stream) const {
    cfp::detail::cuda_check(cudaEventRecord(made_.get(), stream), "cudaEventRecord");
  }
  double until(const timing_event& later) const {
    float ms = 0;
    cfp::detail::cuda_check(cudaEventElapsedTime(&ms, made_.get(), later.made_.get()), "cudaEventElapsedTime");
    return static_cast<double>(ms);
  }

 private:
  struct event_delete {
    void operator()(cudaEvent_t e) const { cudaEventDestroy(e); }
  };
  std::unique_ptr<std::remove_pointer_t<cudaEvent_t>, event_delete> made_;
};

struct matrix_library::product::state {
  matrix_library* library = nullptr;
  blas_choice* algorithm = nullptr;
  matrix_product loops{};  // around the batch
  detail::blas_object<cublasLtMatmulDesc_t> what{};
  detail::blas_object<cublasLtMatrixLayout_t> left{}, right{}, added{}, out{};
  const std::byte *a = nullptr, *b = nullptr, *c = nullptr;
  std::byte* d = nullptr;
  long width[3] = {};  // bytes of a number of a, b and d
  bool adds = false;   // a repeat adds to another: not to be run twice

  void run_with(cudaStream_t stream, const cublasLtMatmulAlgo_t& algo) const {
    for (long i = 0, n = loops.repeats(); i < n; ++i) {
      long at[3];
      const float one = 1, beta = loops.locate(i, at) || c != nullptr ? 1.0f : 0.0f;
      std::byte* const to = d + at[2] * width[2];
      const std::byte* const from = c != nullptr ? c + at[2] * width[2] : to;
      detail::blas_check(cublasLtMatmul(library->handle_.get(), what.get(), &one, b + at[1] * width[1], left.get(),
                                        a + at[0] * width[0], right.get(), &beta, from, added.get(), to, out.get(),
                                        &algo, library->workspace_.get(), workspace_bytes, stream),
                         "cublasLtMatmul");
    }
  }
  bool run_suggestion(cudaStream_t stream, int which) const {
    if (static_cast<std::size_t>(which) >= algorithm->suggested.size()) return false;
    run_with(stream, algorithm->suggested[static_cast<std::size_t>(which)].algo);
    return true;
  }
  void run(cudaStream_t stream) const { run_with(stream, algorithm->suggested[algorithm->best].algo); }

  // Milliseconds of five runs.
  double time(cudaStream_t stream, std::size_t which, const std::array<timing_event, 2>& events,
              const std::function<void()>& wait) const {
    const cublasLtMatmulAlgo_t& algo = algorithm->suggested[which].algo;
    run_with(stream, algo);
    events[0].record(stream);
    for (int repeat = 0; repeat < 5; ++repeat) run_with(stream, algo);
    events[1].record(stream);
    wait();
    return events[0].until(events[1]);
  }
};

inline void matrix_library::choose(cudaStream_t stream, const std::function<void()>& wait) {
  const std::array<timing_event, 2> events{};
  for (const auto& one : std::exchange(made_, {})) {
    const auto s = one.lock();
    if (!s || s->algorithm->chosen || s->adds) continue;
    blas_choice& c = *s->algorithm;
    double least = 0;
    for (std::size_t i = 0; i < c.suggested.size(); ++i)
      if (const double ms = s->time(stream, i, events, wait); i == 0 || ms < least) least = ms, c.best = i;
    c.chosen = true;
  }
}

inline void matrix_library::product::run(cudaStream_t stream) const { made_->run(stream); }
inline bool matrix_library::product::run_suggestion(cudaStream_t stream, int which) const {
  return made_->run_suggestion(stream, which);
}

template <class T>
std::vector<int> matrix_library::set_epilogue(cublasLtMatmulDesc_t what, const matrix_product& p, const epilogue& e,
                                              bool wide_result) {
  const auto set = [&](cublasLtMatmulDescAttributes_t attribute, const auto& x) {
    detail::blas_check(cublasLtMatmulDescSetAttribute(what, attribute, &x, sizeof x), "cublasLtMatmulDescSetAttribute");
  };
  const auto other = [&](const void* numbers) {  // numbers of the result's shape that are read or written beside it
    const std::int64_t leading = p.leading[2];
    set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, numbers);
    set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, leading);
  };
  cublasLtEpilogue_t how = CUBLASLT_EPILOGUE_DEFAULT;
  cudaDataType_t bias = detail::blas_type<T>(wide_result);
  const void* of_columns = e.sums;
  if (e.residual.data != nullptr && (e.gelu || e.residual.wide != wide_result)) return {};
  if (e.bias.data != nullptr) {
    if (p.swapped || e.bias.along != 1) return {};
    how = !e.gelu                    ? CUBLASLT_EPILOGUE_BIAS
          : e.before_gelu != nullptr ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS
                                     : CUBLASLT_EPILOGUE_GELU_BIAS;
    bias = detail::blas_type<T>(e.bias.wide);
    of_columns = e.bias.data;
    if (e.before_gelu != nullptr) other(e.before_gelu);
  } else if (e.slope_at != nullptr) {
    how = CUBLASLT_EPILOGUE_DGELU;
    other(e.slope_at);
  } else if (e.sums != nullptr) {  // the library's A is b here, or a where they are swapped
    how = (e.summed == 1) == p.swapped ? CUBLASLT_EPILOGUE_BGRADB : CUBLASLT_EPILOGUE_BGRADA;
  }
  set(CUBLASLT_MATMUL_DESC_EPILOGUE, how);
  if (of_columns != nullptr) {
    set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, of_columns);
    set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, bias);
  }
  return {static_cast<int>(how), static_cast<int>(bias), e.residual.data != nullptr ? 1 : 0};
}

// (long: the calls of one library in the order it wants them)
template <class T>
matrix_library::product matrix_library::prepare(const call& c, const epilogue& e) {
  using detail::blas_check;
  auto s = std::make_shared<product::state>();
  matrix_product p = as_matrices(c);
  const call_tensor* const t[3] = {&c.operand[p.swapped ? 1 : 0], &c.operand[p.swapped ? 0 : 1], &c.result[0]};
  if (t[0]->wide != t[1]->wide)
    throw device_error("a product of numbers of " + std::string(t[0]->wide ? "32 and 16" : "16 and 32") +
                       " bits has no kernel on a GPU: narrow one of them");
  const cudaDataType_t type[3] = {detail::blas_type<T>(t[0]->wide), detail::blas_type<T>(t[1]->wide),
                                  detail::blas_type<T>(t[2]->wide)};
  for (int x = 0; x < 3; ++x) s->width[x] = type[x] == CUDA_R_32F ? 4 : 2;

  // The innermost loop that does not add becomes the batch.
  long count = 1, apart[3] = {};
  if (p.plain > 0) {
    const int l = p.plain - 1;
    count = p.size[l];
    for (int x = 0; x < 3; ++x) apart[x] = p.stride[x][l];
    p.drop(l);
  }
  s->adds = p.loops > p.plain;

  // Row-major is column-major transposed: d^T = b^T a^T.
  cublasLtMatmulDesc_t what = nullptr;
  blas_check(cublasLtMatmulDescCreate(&what, CUBLAS_COMPUTE_32F, CUDA_R_32F), "cublasLtMatmulDescCreate");
  s->what.reset(what);
  const auto set = [&](cublasLtMatmulDescAttributes_t attribute, const auto& x) {
    blas_check(cublasLtMatmulDescSetAttribute(what, attribute, &x, sizeof x), "cublasLtMatmulDescSetAttribute");
  };
  const cublasOperation_t left = p.transposed[1] ? CUBLAS_OP_T : CUBLAS_OP_N,
                          right = p.transposed[0] ? CUBLAS_OP_T : CUBLAS_OP_N;
  set(CUBLASLT_MATMUL_DESC_TRANSA, left);
  set(CUBLASLT_MATMUL_DESC_TRANSB, right);
  const auto matrix = [&](int x, long rows, long columns, bool transposed) {
    return detail::blas_matrix(type[x], transposed ? columns : rows, transposed ? rows : columns, p.leading[x], count,
                               apart[x]);
  };
  s->left = matrix(1, p.columns, p.sums, p.transposed[1]);
  s->right = matrix(0, p.sums, p.rows, p.transposed[0]);
  s->out = matrix(2, p.columns, p.rows, false);
  s->added = matrix(2, p.columns, p.rows, false);
  s->a = static_cast<const std::byte*>(t[0]->data);
  s->b = static_cast<const std::byte*>(t[1]->data);
  s->d = static_cast<std::byte*>(t[2]->data);
  s->library = this;
  s->loops = p;

  std::string key;
  const auto put = [&](auto x) { key += std::to_string(x) + ' '; };
  for (const long x :
       {p.rows, p.columns, p.sums, count, apart[0], apart[1], apart[2], p.leading[0], p.leading[1], p.leading[2]})
    put(x);
  for (const int x : {static_cast<int>(left), static_cast<int>(right), static_cast<int>(type[0]),
                      static_cast<int>(type[2]), static_cast<int>(s->adds)})
    put(x);

  if (e.any()) {
    if (count > 1 || p.loops > 0) return {};
    const std::vector<int> said = set_epilogue<T>(what, p, e, t[2]->wide);
    if (said.empty()) return {};
    for (const int x : said) put(x);
    s->c = static_cast<const std::byte*>(e.residual.data);
  }

  cublasLtMatmulPreference_t preference = nullptr;
  blas_check(cublasLtMatmulPreferenceCreate(&preference), "cublasLtMatmulPreferenceCreate");
  const detail::blas_object<cublasLtMatmulPreference_t> owned(preference);
  const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& x) {
    blas_check(cublasLtMatmulPreferenceSetAttribute(preference, attribute, &x, sizeof x),
               "cublasLtMatmulPreferenceSetAttribute");
  };
  prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace_bytes);
  const auto aligned = [&](const void* p0,
                           std::initializer_list<long> steps) {  // bytes that all its matrices begin at a multiple of
    std::uintptr_t all = reinterpret_cast<std::uintptr_t>(p0) | 256;
    for (const long step : steps) all |= static_cast<std::uintptr_t>(step);
    return static_cast<std::uint32_t>(all & (~all + 1));
  };
  const auto of = [&](int x, const void* at) {
    std::uintptr_t steps = static_cast<std::uintptr_t>(apart[x] * s->width[x]);
    for (int l = 0; l < p.loops; ++l) steps |= static_cast<std::uintptr_t>(p.stride[x][l] * s->width[x]);
    return aligned(at, {static_cast<long>(steps)});
  };
  const std::uint32_t alignment[4] = {of(1, s->b), of(0, s->a), of(2, s->c != nullptr ? s->c : s->d), of(2, s->d)};
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment[0]);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment[1]);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment[2]);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment[3]);
  for (const std::uint32_t x : alignment) put(x);

  blas_choice& known = choices_.of(algorithm_choice::hash(key));
  if (known.suggested.empty()) {
    known.suggested.resize(suggestions);
    int found = 0;
    const cublasStatus_t status =
        cublasLtMatmulAlgoGetHeuristic(handle_.get(), what, s->left.get(), s->right.get(), s->added.get(), s->out.get(),
                                       preference, suggestions, known.suggested.data(), &found);
    known.suggested.resize(static_cast<std::size_t>(status == CUBLAS_STATUS_SUCCESS ? found : 0));
    if (known.suggested.empty()) {
      if (e.any()) return {};
      throw device_error("cuBLASLt has no algorithm for a product of " + std::to_string(p.rows) + " x " +
                         std::to_string(p.sums) + " x " + std::to_string(p.columns) + ": " +
                         cublasLtGetStatusString(status));
    }
  }
  if (!known.chosen) choices_.recall(known);
  s->algorithm = &known;
  if (!known.chosen) made_.push_back(s);
  product out;
  out.made_ = std::move(s);
  return out;
}

}  // namespace cfp::cuda
