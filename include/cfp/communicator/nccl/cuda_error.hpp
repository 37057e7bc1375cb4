// What the CUDA runtime says of a call that failed.
#pragma once

#include <cfp/core/device_error.hpp>

#include <cuda_runtime.h>

#include <stdexcept>
#include <string>

namespace cfp::inline v0_1::detail {

inline std::string cuda_says(const char* call, cudaError_t code) {
  return std::string(call) + " says " + cudaGetErrorName(code) + " (" + cudaGetErrorString(code) + ")";
}

inline void cuda_check(cudaError_t code, const char* call) {
  if (code != cudaSuccess) throw device_error(cuda_says(call, code));
}

/// Of a query: whether it is done. That it is not yet is no error to be met by a later cudaGetLastError.
inline bool cuda_done(cudaError_t code) {
  if (code == cudaErrorNotReady) static_cast<void>(cudaGetLastError());
  return code == cudaSuccess;
}

}  // namespace cfp

namespace cfp::inline v0_1::cuda {

/// Throws device_error that says what was not possible, and why.
inline void check(cudaError_t e, const char* what) {
  if (e != cudaSuccess) throw device_error(std::string("cannot ") + what + ": " + cudaGetErrorString(e));
}

}  // namespace cfp::cuda
