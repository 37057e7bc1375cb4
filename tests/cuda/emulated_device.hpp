// A GPU for cfp::cuda::executor, emulated: kernels thread by thread, products by the host's BLAS, collectives between threads.
#pragma once

#include "emulated_kernels.hpp"

#include <cfp/runtime/cuda/executor.hpp>
#include <cfp/runtime/host/product_kernel.hpp>
#include <cfp/runtime/host/run_ranks.hpp>

#include <chrono>
#include <functional>

namespace emulated {

/// All but the ranks it works with.
template <class T>
class gpu {
 public:
  using queue = emulated::queue;
  struct memory : cfp::host::memory {
    explicit memory(gpu&) {}
  };
  struct product {
    cfp::call bound;
    explicit operator bool() const { return bound.op != nullptr; }
    void run(const queue&) const { cfp::host::run_product<T>(bound); }
  };
  struct no_graph {
    explicit operator bool() const { return false; }
  };

  explicit gpu(unsigned order = 0) : queue_{order} { openblas_set_num_threads(1); }

  const queue& main() const { return queue_; }
  const queue& side() const { return queue_; }
  cfp::host_mover mover(const queue&) const { return {}; }
  /// Alone; what follows it is left to kernels. Like cuBLASLt, it multiplies numbers of one type.
  product prepare(const cfp::call& c, const cfp::cuda::epilogue& e) const {
    if (c.operand[0].wide != c.operand[1].wide && sizeof(T) < 4) throw std::runtime_error("a product of numbers of two types");
    return e.bias.data == nullptr ? product{c} : product{};
  }
  void set(long step, int pass) { state_ = {step, pass}; }
  const cfp::cuda::step_state* state() const { return &state_; }
  void mark(int, const queue&) const {}
  void meet(int, const queue&) const {}
  no_graph record(const std::function<void()>&) const { return {}; }
  void replay(no_graph) const {}
  void wait() const {}

  using clock = std::chrono::steady_clock;
  void tick(int n) {
    ticks_.resize(std::max(ticks_.size(), static_cast<std::size_t>(n) + 1));
    ticks_[static_cast<std::size_t>(n)] = clock::now();
  }
  double between(int a, int b) const { return std::chrono::duration<double, std::milli>(ticks_[static_cast<std::size_t>(b)] - ticks_[static_cast<std::size_t>(a)]).count(); }
  void sweep() const {}
  double clock_MHz() const { return 0; }

 private:
  queue queue_;
  cfp::cuda::step_state state_;
  std::vector<clock::time_point> ticks_;
};

/// Of a rank among others.
template <class T>
class device : public gpu<T> {
 public:
  explicit device(cfp::rank_context& rank, unsigned order = 0) : gpu<T>(order), rank_(rank) {}
  int rank() const { return rank_.rank; }
  const cfp::thread_communicator& among(int axis, const queue&) const { return rank_.axes[static_cast<std::size_t>(axis)]; }

 private:
  cfp::rank_context& rank_;
};

/// In the place of any rank.
template <class T>
class lone_device : public gpu<T> {
 public:
  void be(int rank) { rank_ = rank; }
  int rank() const { return rank_; }
  cfp::cuda::nobody among(int, const queue&) const { return {}; }

 private:
  int rank_ = 0;
};

}  // namespace emulated
