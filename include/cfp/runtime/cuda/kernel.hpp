// What kernels for GPUs are written with, whatever runs them: see thread.cuh.
#pragma once

#include <cfp/core/placement.hpp>
#include <cfp/core/config.hpp>

/// Code of a kernel: for the GPU alone where there is one, for the CPU where a test runs it there.
#if defined(__CUDACC__)
#define CFP_DEVICE __device__
#else
#define CFP_DEVICE
#endif

/// The loop that follows has a fixed number of steps, and is written out: arrays it indexes then stay in registers.
#if defined(__CUDACC__)
#define CFP_UNROLL _Pragma("unroll")
#else
#define CFP_UNROLL
#endif

namespace cfp::inline v0_1::cuda {

inline constexpr int warp_size = 32;

/// Two values combined. What is no number stays.
template <reduction R, class T>
CFP_HOST_DEVICE constexpr T combine(T a, T b) {
  if constexpr (R == reduction::max) return a > b || a != a ? a : b;
  else if constexpr (R == reduction::min) return a < b || a != a ? a : b;
  else return a + b;
}
template <reduction R>
struct combiner {
  template <class T>
  CFP_HOST_DEVICE constexpr T operator()(T a, T b) const { return combine<R>(a, b); }
};

/// N neighbouring elements that one instruction loads or stores.
template <class T, int N>
struct alignas(sizeof(T) * N) pack {
  T at[N];
};

}  // namespace cfp::cuda
