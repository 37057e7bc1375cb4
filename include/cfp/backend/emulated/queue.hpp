// As cuda::queue, but on a CPU: the same kernels, run at once, thread by thread. It finds wrong values, places outside
// memory (with a sanitizer), and what block.hpp says.
#pragma once

#include <cfp/backend/emulated/thread.hpp>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <numeric>

struct CUstream_st;  // of CUDA

namespace cfp::inline v0_1::emulated {

/// Runs a grid of blocks, one after another. `order`: 0, threads take turns by number; else they and the warps come in
/// an order of that number, and each warp goes as far ahead as it can: what it reads that others had yet to write, or
/// writes that they had yet to read, shows.
template <class Kernel>
void launch(const Kernel& k, long blocks, long shared_bytes = 0, unsigned order = 0) {
  for (long i = 0; i < blocks; ++i) {
    running_block b(Kernel::threads, shared_bytes, order);
    b.run([&](int index) { k(cpu_thread<Kernel::threads>(b, i, blocks, index)); });
  }
}

/// Puts work at the end of a stream: set by who emulates streams too.
inline void (*put_into_stream)(CUstream_st* stream, std::function<void()> work) = nullptr;

class queue {
 public:
  queue() = default;
  /// Runs at once; `order`: in which threads take turns.
  explicit queue(unsigned order) : order_(order) {}
  /// Runs when the stream comes to it.
  explicit queue(CUstream_st* stream) : stream_(stream) {}

  CUstream_st* stream() const { return stream_; }

  template <class Kernel>
  void launch(const Kernel& k, long blocks, long shared_bytes = 0) const {
    put([=, order = order_] { emulated::launch(k, blocks, shared_bytes, order); });
  }
  void zero(void* at, long bytes) const {
    put([=] { std::memset(at, 0, static_cast<std::size_t>(bytes)); });
  }
  long sort_bytes(long n, int) const { return n * static_cast<long>(sizeof(std::int32_t)); }
  void sort_pairs(const std::int32_t* keys, std::int32_t* sorted_keys, const std::int32_t* values,
                  std::int32_t* sorted_values, long n, int bits, void* workspace) const {
    put([=] {
      auto* at = static_cast<std::int32_t*>(workspace);
      std::iota(at, at + n, 0);
      const auto low = [&](std::int32_t i) { return static_cast<std::uint64_t>(keys[i]) & ((1ull << bits) - 1); };
      std::stable_sort(at, at + n, [&](std::int32_t a, std::int32_t b) { return low(a) < low(b); });
      for (long i = 0; i < n; ++i) {
        sorted_keys[i] = keys[at[i]];
        sorted_values[i] = values[at[i]];
      }
    });
  }

 private:
  template <class Work>
  void put(const Work& work) const {
    if (stream_ == nullptr) work();
    else put_into_stream(stream_, work);
  }

  unsigned order_ = 0;  // in which threads take turns
  CUstream_st* stream_ = nullptr;
};

}  // namespace cfp::emulated
