// A GPU that cases of kernels run on: see tested_device.hpp. Its memory is copied to and fro around what runs; what
// nothing was placed in holds a pattern that must still be there afterwards.
#pragma once

#include <cfp/backend/cuda/device/device.cuh>

#include <algorithm>
#include <cstring>

namespace tested {

class device {
 public:
  using queue = cfp::cuda::queue;
  /// A GPU multiplies and adds in one rounding, its exp and the like are off by two units in the last place, and its
  /// sigmoid, fast, by 2^-21 (4 + |x|), which is 8 such roundings where |x| < 4; as many are for the rest.
  static constexpr long roundings = 16;
  /// Twice that of a CPU: tensor cores cut what a CPU rounds.
  static constexpr double matrix_error = 0x1p-19;

  explicit device(unsigned = 0) {}
  const queue& main() const { return queue_; }

  /// As far past a multiple of 16 bytes as the host has it.
  void* place(void* at, long bytes) {
    const long from = cfp::cuda::pieces_of(used_ + between, between) * between +
                      static_cast<long>(reinterpret_cast<std::uintptr_t>(at) % 16);
    used_ = from + bytes;
    if (used_ + between > capacity)
      throw std::logic_error("a case needs more than " + std::to_string(capacity) + " bytes of the GPU");
    places_.push_back({static_cast<std::byte*>(at), from, bytes});
    return memory() + from;
  }

  template <class Issue>
  void run(const Issue& issue) {
    using cfp::cuda::check;
    std::vector<std::byte> here(static_cast<std::size_t>(used_ + between), pattern);
    for (const placed& p : places_) std::copy_n(p.host, p.bytes, here.data() + p.from);
    check(cudaMemcpy(memory(), here.data(), here.size(), cudaMemcpyHostToDevice), "copy to the GPU");
    issue();
    check(cudaStreamSynchronize(queue_.stream()), "finish what was launched");
    check(cudaMemcpy(here.data(), memory(), here.size(), cudaMemcpyDeviceToHost), "copy from the GPU");
    for (const placed& p : places_) {
      std::copy_n(here.data() + p.from, p.bytes, p.host);
      std::fill_n(here.data() + p.from, p.bytes, pattern);
    }
    if (std::any_of(here.begin(), here.end(), [](std::byte b) { return b != pattern; }))
      throw std::logic_error("a kernel has written beside its operands and results");
  }

 private:
  static constexpr long capacity = 64l << 20, between = 256;
  static constexpr std::byte pattern{0xff};  // no number of any type
  struct placed {
    std::byte* host;
    long from, bytes;
  };

  // Taken once: taking memory stops a GPU.
  static std::byte* memory() {
    static std::byte* const all = [] {
      void* p = nullptr;
      cfp::cuda::check(cudaMalloc(&p, capacity), "take memory of the GPU");
      return static_cast<std::byte*>(p);
    }();
    return all;
  }

  queue queue_;
  std::vector<placed> places_;
  long used_ = 0;
};

}  // namespace tested
