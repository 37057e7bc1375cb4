// What the host gives a GPU over and over, or is given, while both go on with their work.
#pragma once

#include <cfp/backend/cuda/device/owned.hpp>
#include <cfp/communicator/nccl/cuda_error.hpp>

#include <cuda_runtime.h>

#include <array>
#include <cstddef>
#include <memory>
#include <vector>

namespace cfp::inline v0_1::cuda {

template <class Gpu>
struct gpu_memory;

/// As host::memory::staging: of each item there are two copies in page-locked memory, used in turn, which the main
/// stream copies to the GPU or from it when it comes to that. Who wants a copy again waits for that alone.
template <class Gpu>
class staging {
 public:
  static constexpr std::size_t copies = 2;

  /// Takes all memory there is: to take page-locked memory may wait for the GPU.
  staging(const gpu_memory<Gpu>& where, const std::vector<long>& sizes) : on_(where.on), items_(sizes.size()) {
    std::size_t all = 0;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      items_[i].size = static_cast<std::size_t>(sizes[i]);
      for (copy& c : items_[i].turn) {
        c.done = detail::make_event(cudaEventDisableTiming);
        c.at = all;
        all += (items_[i].size + 63) / 64 * 64;
      }
    }
    if (all == 0) return;
    void* p = nullptr;
    check(cudaMallocHost(&p, all), "take page-locked memory");
    pinned_.reset(static_cast<std::byte*>(p));
  }

  template <class Fill>
  void send(std::size_t item, void* at, const Fill& fill) {
    part& x = items_[item];
    const bool used = x.begun >= copies;
    const copy& c = x.turn[x.begun++ % copies];
    if (used) on_->wait_for(c.done.get());
    std::byte* const here = pinned_.get() + c.at;
    fill(here);
    check(cudaMemcpyAsync(at, here, x.size, cudaMemcpyHostToDevice, on_->main().stream()), "copy to the GPU");
    check(cudaEventRecord(c.done.get(), on_->main().stream()), "mark a place in a stream");
  }
  void fetch(std::size_t item, const void* at) {
    part& x = items_[item];
    const copy& c = x.turn[x.begun++ % copies];
    if (at != nullptr)
      check(cudaMemcpyAsync(pinned_.get() + c.at, at, x.size, cudaMemcpyDeviceToHost, on_->main().stream()),
            "copy from the GPU");
    check(cudaEventRecord(c.done.get(), on_->main().stream()), "mark a place in a stream");
  }
  const void* fetched(std::size_t item) {
    part& x = items_[item];
    const copy& c = x.turn[x.taken++ % copies];
    on_->wait_for(c.done.get());
    return pinned_.get() + c.at;
  }

 private:
  struct copy {
    std::size_t at = 0;
    detail::owned_event done{};  // with what was last copied
  };
  struct part {
    std::size_t size = 0, begun = 0, taken = 0;
    std::array<copy, copies> turn{};
  };
  struct pinned_free {
    void operator()(std::byte* p) const { cudaFreeHost(p); }
  };

  Gpu* on_;
  std::unique_ptr<std::byte, pinned_free> pinned_;
  std::vector<part> items_;
};

}  // namespace cfp::cuda
