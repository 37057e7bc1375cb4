// Numbers of 16 bits made of wide ones, of many tensors in a launch.
#pragma once

#include <cfp/backend/cuda/kernel/many_kernel.hpp>
#include <cfp/backend/cuda/kernel/storage.hpp>

namespace cfp::inline v0_1::cuda {

template <class T>
struct narrow_kernel {
  static constexpr int threads = 256;
  static constexpr int width = full_width<T>, times = 2;  // vectors of a thread

  const float* from = nullptr;
  void* to = nullptr;
  long n = 0;

  long blocks() const { return pieces_of(n, threads * times * width); }

  template <class Thread>
  CFP_DEVICE void operator()(const Thread& t) const {
    chain_tensor wide, narrow;
    wide.data = const_cast<float*>(from);
    narrow.data = to;
    wide.wide = true;
    wide.along = narrow.along = 1;
    CFP_UNROLL
    for (int k = 0; k < times; ++k) {
      const long i = ((t.block() * times + k) * threads + t.thread()) * width;
      if (i + width <= n) copy<width>(wide, narrow, i);
      else
        for (long j = i; j < n; ++j) copy<1>(wide, narrow, j);
    }
  }

 private:
  template <int N>
  CFP_DEVICE static void copy(const chain_tensor& wide, const chain_tensor& narrow, long i) {
    fetched<N> raw;
    float x[N];
    fetch<T, N>(wide, i, raw);
    widen<T>(wide, raw, x);
    store<T>(narrow, i, x);
  }
};

}  // namespace cfp::cuda
