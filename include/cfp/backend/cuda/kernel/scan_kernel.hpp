// One position of a scan, a thread for each number.
#pragma once

#include <cfp/backend/cuda/kernel/kernel.hpp>
#include <cfp/op/bf16.hpp>

namespace cfp::inline v0_1::cuda {

template <class T>
struct scan_kernel {
  static constexpr int threads = 256;

  const T* in = nullptr;
  const T* kept = nullptr;
  long per = 0;
  T* out = nullptr;
  long apart = 1;
  T* carry = nullptr;
  long outer = 1, inner = 1;

  long blocks() const { return pieces_of(outer * inner, threads); }

  template <class Thread>
  CFP_DEVICE void operator()(const Thread& t) const {
    using wide = wide_t<T>;
    const long k = t.block() * threads + t.thread();
    if (k >= outer * inner) return;
    const long row = k / inner * apart, i = k % inner;
    const wide was = static_cast<wide>(carry[k]);
    const wide factor = per > 0 ? static_cast<wide>(kept[row * (inner / per) + i / per]) : wide(1);
    out[row * inner + i] = carry[k];
    carry[k] = T(factor * was + static_cast<wide>(in[row * inner + i]));
  }
};

/// Does in a queue what `host::scanner` does.
template <class Queue>
class scanner {
 public:
  explicit scanner(const Queue& q) : queue_(q) {}

  template <class T>
  void step(const T* in, const T* kept, long per, T* out, long apart, T* carry, long outer, long inner) const {
    const scan_kernel<T> k{in, kept, per, out, apart, carry, outer, inner};
    queue_.launch(k, k.blocks());
  }

 private:
  const Queue& queue_;
};

}  // namespace cfp::cuda
