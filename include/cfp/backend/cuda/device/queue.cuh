// A queue of a GPU: kernels and what else runs on the device, in order. Nothing is allocated while it runs.
#pragma once

#include <cfp/backend/cuda/device/thread.cuh>
#include <cfp/communicator/nccl/cuda_error.hpp>
#include <cfp/core/device_error.hpp>

#include <cub/device/device_radix_sort.cuh>

#include <cuda_runtime.h>

#include <stdexcept>
#include <string>

namespace cfp::inline v0_1::cuda {

class queue {
 public:
  queue() = default;
  explicit queue(cudaStream_t s) : stream_(s) {}

  cudaStream_t stream() const { return stream_; }

  /// Runs the kernel by so many blocks, each with so many bytes of shared memory.
  template <class Kernel>
  void launch(const Kernel& k, long blocks, long shared_bytes = 0) const {
    if (blocks < 1 || blocks > 0x7fffffffL)
      throw device_error("cannot launch a kernel of " + std::to_string(blocks) + " blocks: a grid has 1 to 2147483647");
    if (shared_bytes > without_asking)
      check(cudaFuncSetAttribute(run_kernel<Kernel>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 static_cast<int>(shared_bytes)),
            "set aside shared memory for a kernel");
    run_kernel<Kernel>
        <<<static_cast<unsigned>(blocks), Kernel::threads, static_cast<std::size_t>(shared_bytes), stream_>>>(k);
    check(cudaGetLastError(), "launch a kernel");
  }

  /// Fills memory with zeros.
  void zero(void* at, long bytes) const {
    check(cudaMemsetAsync(at, 0, static_cast<std::size_t>(bytes), stream_), "fill memory with zeros");
  }

  /// Bytes of workspace that sorting n pairs by the lowest bits of keys takes.
  long sort_bytes(long n, int bits) const {
    std::size_t bytes = 0;
    const std::int32_t* from = nullptr;
    std::int32_t* to = nullptr;
    check(cub::DeviceRadixSort::SortPairs(nullptr, bytes, from, to, from, to, n, 0, bits, stream_),
          "ask what sorting takes");
    return static_cast<long>(bytes);
  }
  /// Sorts pairs by so many bits of their keys, which have no others; equal keys stay in their order.
  void sort_pairs(const std::int32_t* keys, std::int32_t* sorted_keys, const std::int32_t* values,
                  std::int32_t* sorted_values, long n, int bits, void* workspace) const {
    auto bytes = static_cast<std::size_t>(sort_bytes(n, bits));
    check(cub::DeviceRadixSort::SortPairs(workspace, bytes, keys, sorted_keys, values, sorted_values, n, 0, bits,
                                          stream_),
          "sort");
  }

 private:
  static constexpr long without_asking = 48 << 10;
  cudaStream_t stream_ = nullptr;
};

}  // namespace cfp::cuda
