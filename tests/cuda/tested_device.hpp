// What the cases of kernels run on: a GPU where nvcc compiles them, the emulation elsewhere. Both have
//   roundings: how many roundings of numbers of less than about 8 a functor's result may be off from the host's; 0:
//     none, it is the same bits
//   matrix_error: relative, of a sum of products that is computed in float
//   main(): a queue
//   place(at, n): where kernels find n bytes that the host has `at`
//   run(issue): what is issued has run, and what it wrote is where the host has it
#pragma once

#if defined(__CUDACC__)
#include "tested_gpu.cuh"
#else
#include <cfp/backend/emulated/kernels.hpp>

namespace tested {

class device {
 public:
  using queue = cfp::emulated::queue;
  static constexpr long roundings = 0;
  static constexpr double matrix_error = 0x1p-20;

  /// `order`: in which threads take turns.
  explicit device(unsigned order = 0) : queue_{order} {}
  const queue& main() const { return queue_; }
  void* place(void* at, long) const { return at; }
  template <class Issue>
  void run(const Issue& issue) const {
    issue();
  }

 private:
  queue queue_;
};

}  // namespace tested
#endif
