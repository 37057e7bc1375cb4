// Combines partial results: result[i] = partial[0][i], partial[1][i], ... in one order.
#pragma once

#include <cfp/backend/cuda/kernel/storage.hpp>

namespace cfp::inline v0_1::cuda {

template <reduction R, class T>
struct fold_kernel {
  static constexpr int threads = 512;
  static constexpr int groups = threads / warp_size;  // of parts; within one, lanes stand for results
  static constexpr long shared_bytes = threads * static_cast<long>(sizeof(float));

  const float* partial = nullptr;
  long parts = 0, count = 0;
  chain_tensor result;  // `along` from one to the next

  long blocks() const { return pieces_of(count, warp_size); }

  template <class Thread>
  CFP_DEVICE void operator()(const Thread& t) const {
    const long i = t.block() * warp_size + t.lane();
    float* memory = reinterpret_cast<float*>(t.shared());
    float sum = identity<R>;
    if (i < count) {
      CFP_UNROLL4
      for (long p = t.warp(); p < parts; p += groups) sum = combine<R>(sum, partial[p * count + i]);
    }
    memory[t.thread()] = sum;
    t.sync();
    if (t.warp() > 0 || i >= count) return;
    for (int g = 1; g < groups; ++g) sum = combine<R>(sum, memory[g * warp_size + t.lane()]);
    store_one<T>(result, i * result.along, sum);
  }
};

}  // namespace cfp::cuda
