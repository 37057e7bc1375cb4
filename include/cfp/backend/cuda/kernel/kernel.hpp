// What kernels for GPUs are written with, whatever runs them: see thread.cuh.
#pragma once

#include <cfp/core/config.hpp>
#include <cfp/core/placement.hpp>

#include <limits>

/// Code of a kernel: for the GPU alone where there is one, for the CPU where a test runs it there.
#if defined(__CUDACC__)
#define CFP_DEVICE __device__
#else
#define CFP_DEVICE
#endif

/// The loop that follows has a small constant count, and what it indexes is meant to be in registers.
#if defined(__CUDACC__)
#define CFP_UNROLL _Pragma("unroll")
#define CFP_UNROLL4 _Pragma("unroll 4")  ///< any count, 4 at a time: loads that do not wait for each other
#else
#define CFP_UNROLL
#define CFP_UNROLL4
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
/// What changes nothing when it is combined.
template <reduction R>
inline constexpr float identity = R == reduction::sum   ? 0.0f
                                  : R == reduction::max ? -std::numeric_limits<float>::infinity()
                                                        : std::numeric_limits<float>::infinity();
template <reduction R>
struct combiner {
  template <class T>
  CFP_HOST_DEVICE constexpr T operator()(T a, T b) const {
    return combine<R>(a, b);
  }
};

/// How many pieces of `size` hold `n`.
CFP_HOST_DEVICE constexpr long pieces_of(long n, long size) { return (n + size - 1) / size; }

/// N neighbouring elements that one instruction loads or stores.
template <class T, int N>
struct alignas(sizeof(T) * N) pack {
  T at[N];
};

}  // namespace cfp::cuda
