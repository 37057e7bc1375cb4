// Memory of a GPU, for the programs of its rank.
#pragma once

#include <cfp/backend/cuda/device/staging.hpp>
#include <cfp/backend/memory_use.hpp>
#include <cfp/communicator/nccl/cuda_error.hpp>

#include <cuda_runtime.h>

#include <cstddef>
#include <memory>
#include <string>

namespace cfp::inline v0_1::cuda {

/// A GPU has less memory free than is asked for.
struct out_of_memory : device_error {
  using device_error::device_error;
};

namespace detail {
inline void free_of_gpu(std::byte* p) { cudaFree(p); }
struct page_locked_delete {
  void operator()(std::byte* p) const { cudaFreeHost(p); }
};
}  // namespace detail

/// As host::memory. What `write` and `read` move passes through a copy of the host's own; both wait.
template <class Gpu>
struct gpu_memory {
  using block = std::unique_ptr<std::byte, counted_free<&detail::free_of_gpu>>;
  using staging = cuda::staging<Gpu>;

  using host_block = std::unique_ptr<std::byte, detail::page_locked_delete>;

  Gpu* on;

  /// Throws out_of_memory.
  block allocate(long bytes) const {
    void* p = nullptr;
    const cudaError_t e = cudaMalloc(&p, static_cast<std::size_t>(bytes > 0 ? bytes : 1));
    if (e == cudaErrorMemoryAllocation) {
      cudaGetLastError();  // it is no error of what comes next
      throw out_of_memory("the GPU has no " + std::to_string(bytes) +
                          " bytes free; take smaller pieces, or end what else runs on it");
    }
    check(e, "take memory of the GPU");
    on->use().take(bytes);
    return block(static_cast<std::byte*>(p), {&on->use(), bytes});
  }
  /// Page-locked memory of the host, which streams copy to and from.
  static host_block allocate_on_host(long bytes) {
    void* p = nullptr;
    check(cudaMallocHost(&p, static_cast<std::size_t>(bytes > 0 ? bytes : 1)), "take page-locked memory");
    return host_block(static_cast<std::byte*>(p));
  }
  template <class Fill>
  void write(void* at, long bytes, const Fill& fill) const {
    const auto size = static_cast<std::size_t>(bytes);
    const auto here = std::make_unique_for_overwrite<std::byte[]>(size);
    fill(here.get());
    check(cudaMemcpyAsync(at, here.get(), size, cudaMemcpyHostToDevice, on->main().stream()), "copy to the GPU");
    on->wait();
  }
  template <class Use>
  void read(const void* at, long bytes, const Use& use_them) const {
    const auto size = static_cast<std::size_t>(bytes);
    const auto here = std::make_unique_for_overwrite<std::byte[]>(size);
    check(cudaMemcpyAsync(here.get(), at, size, cudaMemcpyDeviceToHost, on->main().stream()), "copy from the GPU");
    on->wait();
    use_them(here.get());
  }
};

}  // namespace cfp::cuda
