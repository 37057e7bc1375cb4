// Several kernels of one kind as one launch: their blocks follow one another.
#pragma once

#include <cfp/backend/cuda/kernel/kernel.hpp>

#include <algorithm>
#include <cstddef>
#include <vector>

namespace cfp::inline v0_1::cuda {

/// Bytes of arguments that a kernel takes (CUDA 12.1 on; 4 KiB before).
#if defined(CUDART_VERSION) && CUDART_VERSION < 12010
inline constexpr std::size_t most_arguments = 4000;
#else
inline constexpr std::size_t most_arguments = 32000;
#endif

/// A thread that takes its block for another one of a smaller grid.
template <class Thread>
struct thread_of_part : Thread {
  long part_block, part_blocks;
  CFP_DEVICE thread_of_part(const Thread& t, long block, long blocks)
      : Thread(t), part_block(block), part_blocks(blocks) {}
  CFP_DEVICE long block() const { return part_block; }
  CFP_DEVICE long blocks() const { return part_blocks; }
};

template <class Kernel>
inline constexpr std::size_t most_kernels = most_arguments / (sizeof(Kernel) + sizeof(long));

template <class Kernel, std::size_t Most = most_kernels<Kernel>>
struct many_kernel {
  static constexpr int threads = Kernel::threads;
  static constexpr std::size_t most = Most;

  Kernel each[most];
  long end[most];  // the number of blocks up to and with each
  int count = 0;

  void add(const Kernel& k) {
    const auto at = static_cast<std::size_t>(count);
    each[at] = k;
    end[at] = blocks() + k.blocks();
    ++count;
  }
  bool full() const { return count == static_cast<int>(most); }
  long blocks() const { return count == 0 ? 0 : end[static_cast<std::size_t>(count) - 1]; }

  template <class Thread>
  CFP_DEVICE void operator()(const Thread& t) const {
    int low = 0, high = count - 1;
    while (low < high) {
      const int middle = (low + high) / 2;
      if (t.block() < end[middle]) high = middle;
      else low = middle + 1;
    }
    const long begin = low > 0 ? end[low - 1] : 0;
    each[low](thread_of_part<Thread>(t, t.block() - begin, end[low] - begin));
  }
};

/// At most so many by a launch.
template <std::size_t Most, class Kernel, class Queue>
void launch_some(const Queue& q, const std::vector<Kernel>& all, long shared_bytes = 0) {
  many_kernel<Kernel, Most> k;
  const auto go = [&] {
    if (k.blocks() > 0) q.launch(k, k.blocks(), shared_bytes);
    k.count = 0;
  };
  for (const Kernel& one : all) {
    k.add(one);
    if (k.full()) go();
  }
  go();
}
/// As few launches as there can be.
template <class Kernel, class Queue>
void launch_many(const Queue& q, const std::vector<Kernel>& all, long shared_bytes = 0) {
  launch_some<most_kernels<Kernel>>(q, all, shared_bytes);
}

}  // namespace cfp::cuda
