// A GPU that runs programs, as a device: two streams and events between them, memory, products, graphs
// (long: each is a few calls of CUDA).
#pragma once

#include <cfp/backend/cuda/device/beside_bytes.hpp>
#include <cfp/backend/cuda/device/gpu_memory.hpp>
#include <cfp/backend/cuda/device/owned.hpp>
#include <cfp/backend/cuda/kernel/coder_kernels.hpp>
#include <cfp/backend/cuda/kernel/scan_kernel.hpp>
#include <cfp/backend/cuda/kernel/step_state.hpp>
#include <cfp/backend/cuda/make_ready.hpp>
#include <cfp/backend/engine.hpp>
#include <cfp/backend/memory_use.hpp>
#include <cfp/communicator/nccl/captured_graph.hpp>
#include <cfp/communicator/nccl/cuda_error.hpp>
#include <cfp/core/device_error.hpp>

#include <cuda_runtime.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace cfp::inline v0_1::cuda {

namespace detail {
/// Lets a processor work for some cycles, and says how many there were in how many nanoseconds.
struct clock_kernel {
  static constexpr int threads = 1;
  static constexpr long long cycles = 200000;
  long long* out;
  template <class Thread>
  CFP_DEVICE void operator()(const Thread&) const {
#if defined(__CUDA_ARCH__)
    long long from = 0, to = 0;
    const auto nanoseconds = [](long long& at) { asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(at)); };
    const long long begin = clock64();
    nanoseconds(from);
    while (clock64() - begin < cycles) {}
    nanoseconds(to);
    out[0] = clock64() - begin;
    out[1] = to - from;
#endif
  }
};

/// Reads memory, and nothing more: what was in the caches is gone, and they hold nothing that must be written back.
struct sweep_kernel {
  static constexpr int threads = 256;
  const std::uint32_t* from;
  long count;
  std::uint32_t* never;  // is what nothing sums up to
  template <class Thread>
  CFP_DEVICE void operator()(const Thread& t) const {
    std::uint32_t all = 0;
    for (long i = t.block() * threads + t.thread(); i < count; i += t.blocks() * threads) all |= from[i];
    if (all != 0) *never = all;
  }
};

/// Moves bytes within the memory of the GPU, or between it and page-locked memory of the host, in a queue.
struct gpu_mover {
  cudaStream_t stream;
  void copy(void* to, const void* from, long bytes) const {
    check(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDefault, stream), "copy");
  }
  void zero(void* to, long bytes) const {
    check(cudaMemsetAsync(to, 0, static_cast<std::size_t>(bytes), stream), "fill memory with zeros");
  }
  void copy_rows(void* to, long to_step, const void* from, long from_step, long bytes, long rows) const {
    if (rows == 1) return copy(to, from, bytes);
    check(cudaMemcpy2DAsync(to, static_cast<std::size_t>(to_step), from, static_cast<std::size_t>(from_step),
                            static_cast<std::size_t>(bytes), static_cast<std::size_t>(rows), cudaMemcpyDeviceToDevice,
                            stream),
          "copy rows");
  }
};
}  // namespace detail

/// The current GPU of the calling thread, for numbers stored as T; all but the ranks it works with. A `Queue` is made
/// from a stream and launches kernels into it; a `Library` makes products ready: `cuda::queue` and `matrix_library`
/// where there is a GPU.
template <class T, class Queue, class Library>
class basic_gpu {
 public:
  static constexpr bool immediate = false;
  using number = T;
  using queue = Queue;
  using parts = cuda::parts<T, queue>;

  struct memory : gpu_memory<basic_gpu> {
    explicit memory(basic_gpu& g) : gpu_memory<basic_gpu>{&g} {}
  };

  class product {
   public:
    product() = default;
    explicit product(typename Library::product made) : made_(std::move(made)) {}
    explicit operator bool() const { return static_cast<bool>(made_); }
    void run(const queue& q) const { made_.run(q.stream()); }
    /// By one of cuBLASLt's suggestions, for measuring; false if there are no more.
    bool run_suggestion(const queue& q, int which) const { return made_.run_suggestion(q.stream(), which); }

   private:
    typename Library::product made_;
  };
  using graph = std::shared_ptr<captured_graph>;

  explicit basic_gpu(const parts& shared)
      : parts_(shared), main_stream_(detail::make_stream()), main_(main_stream_.get()) {
    for (detail::owned_stream& s : side_streams_) s = detail::make_stream(), sides_.emplace_back(s.get());
    void* p = nullptr;
    check(cudaMalloc(&p, sizeof(step_state)), "take memory of the GPU");
    state_.reset(static_cast<std::byte*>(p));
  }
  basic_gpu(const basic_gpu&) = delete;
  basic_gpu& operator=(const basic_gpu&) = delete;

  /// For what was put into all queues.
  void wait() const { wait_(nullptr); }
  /// For what the main queue had been given when the event was recorded.
  void wait_for(cudaEvent_t e) const { wait_(e); }

  /// Bytes of the GPU, and those of them that programs may take, what is loaded included.
  long total_bytes() const { return memory_now().second; }
  long free_bytes() const { return memory_now().first + use_.now; }
  long beside_bytes(const program& p, const cfp::graph& g, int rank) {
    return cuda::beside_bytes(*this, parts_, p, g, rank);
  }

  memory_use& use() { return use_; }
  const memory_use& use() const { return use_; }
  ready<queue> make_ready(const places& where, const instruction& i) {
    return cuda::make_ready<basic_gpu>(*this, parts_, where, i);
  }
  void put(const queue& q, const std::function<void(const queue&)>& work) const { work(q); }

  /// How an event of the main queue is waited for, null: all of it, where there is a deadline.
  void wait_by(std::function<void(cudaEvent_t)> f) { wait_ = std::move(f); }

  /// What is ready to run is as fast as can be chosen.
  void settle() {
    library_.choose(main_.stream(), [this] { wait(); });
  }
  Library& library() { return library_; }

  const queue& main() const { return main_; }
  const queue& side(int stream) const { return sides_[static_cast<std::size_t>(stream)]; }
  detail::gpu_mover mover(const queue& q) const { return detail::gpu_mover{q.stream()}; }
  cuda::coder<queue> coder(const queue& q) const { return cuda::coder<queue>(q); }
  cuda::scanner<queue> scanner(const queue& q) const { return cuda::scanner<queue>(q); }
  product prepare(const call& c, const epilogue& e) {
    product made(library_.template prepare<T>(c, e));
    if (!made) ++refused_epilogues_;
    return made;
  }
  /// How many products are followed by kernels that the library should have spared.
  long refused_epilogues() const { return refused_epilogues_; }

  void set(long step) { main_.launch(set_step_kernel{state(), step}, 1); }
  void set_pass(int pass, bool first) { main_.launch(set_pass_kernel{state(), pass, first}, 1); }
  step_state* state() const { return reinterpret_cast<step_state*>(state_.get()); }

  void mark(int n, const queue& q) {
    const auto at = static_cast<std::size_t>(n);
    if (events_.size() <= at) events_.resize(at + 1);
    if (!events_[at]) events_[at] = detail::make_event(cudaEventDisableTiming);
    check(cudaEventRecord(events_[at].get(), q.stream()), "mark a place in a stream");
  }
  void meet(int n, const queue& q) {
    check(cudaStreamWaitEvent(q.stream(), events_[static_cast<std::size_t>(n)].get(), 0), "wait for another stream");
  }

  graph record(const std::function<void()>& issue) {
    check(cudaStreamBeginCapture(main_.stream(), cudaStreamCaptureModeThreadLocal), "begin to record a graph");
    cudaGraph_t recorded = nullptr;
    try {
      issue();
    } catch (...) {
      cudaStreamEndCapture(main_.stream(), &recorded);
      if (recorded != nullptr) cudaGraphDestroy(recorded);
      throw;
    }
    check(cudaStreamEndCapture(main_.stream(), &recorded), "record a graph");
    cudaGraphExec_t made = nullptr;
    const cudaError_t e = cudaGraphInstantiate(&made, recorded, 0);
    cudaGraphDestroy(recorded);
    check(e, "make a graph ready");
    return std::make_shared<captured_graph>(made);
  }
  void replay(const graph& g) const { check(cudaGraphLaunch(g->get(), main_.stream()), "launch a graph"); }

  // For a stopwatch.
  void tick(int n) {
    const auto at = static_cast<std::size_t>(n);
    while (ticks_.size() <= at) ticks_.push_back(detail::make_event(cudaEventDefault));
    check(cudaEventRecord(ticks_[at].get(), main_.stream()), "note a time");
  }
  double between(int a, int b) const {
    float ms = 0;
    check(
        cudaEventElapsedTime(&ms, ticks_[static_cast<std::size_t>(a)].get(), ticks_[static_cast<std::size_t>(b)].get()),
        "read a clock");
    return static_cast<double>(ms);
  }
  void sweep() {
    if (!swept_) {
      int l2 = 0, device = 0;
      check(cudaGetDevice(&device), "ask for the GPU");
      check(cudaDeviceGetAttribute(&l2, cudaDevAttrL2CacheSize, device), "ask for the cache");
      sweep_bytes_ = 4l * l2;
      swept_ = memory(*this).allocate(sweep_bytes_);
      main_.zero(swept_.get(), sweep_bytes_);
    }
    auto* const words = reinterpret_cast<std::uint32_t*>(swept_.get());
    const long count = sweep_bytes_ / static_cast<long>(sizeof(std::uint32_t));
    main_.launch(detail::sweep_kernel{words, count, words}, std::min(count / 256 + 1, 4096l));
  }
  double clock_MHz() {
    if (!clock_) clock_ = memory(*this).allocate(2 * sizeof(long long));
    main_.launch(detail::clock_kernel{reinterpret_cast<long long*>(clock_.get())}, 1);
    double out = 0;
    memory(*this).read(clock_.get(), 2 * sizeof(long long), [&](const void* data) {
      const auto* x = static_cast<const long long*>(data);
      out = x[1] > 0 ? 1000.0 * static_cast<double>(x[0]) / static_cast<double>(x[1]) : 0;
    });
    return out;
  }

 private:
  static std::pair<long, long> memory_now() {
    std::size_t free = 0, total = 0;
    check(cudaMemGetInfo(&free, &total), "ask how much memory is free");
    return {static_cast<long>(free), static_cast<long>(total)};
  }

  const parts parts_;
  memory_use use_;
  std::function<void(cudaEvent_t)> wait_ = [this](cudaEvent_t e) {  // no virtual function: nvcc 13.0 fails on the
                                                                    // destructor
    check(e != nullptr ? cudaEventSynchronize(e) : cudaStreamSynchronize(main_.stream()), "finish what was launched");
  };
  detail::owned_stream main_stream_;
  std::array<detail::owned_stream, streams_beside> side_streams_;
  queue main_;
  std::vector<queue> sides_;
  Library library_;
  long refused_epilogues_ = 0;
  typename memory::block state_;
  std::vector<detail::owned_event> events_, ticks_;
  typename memory::block swept_, clock_;
  long sweep_bytes_ = 0;
};

}  // namespace cfp::cuda
