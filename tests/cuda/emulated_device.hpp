// A GPU of a rank for cfp::cuda::executor, emulated: kernels thread by thread, products by the host's BLAS, collectives between threads.
#pragma once

#include "emulated_kernels.hpp"

#include <cfp/runtime/cuda/executor.hpp>
#include <cfp/runtime/host/product_kernel.hpp>
#include <cfp/runtime/host/run_ranks.hpp>

#include <functional>

namespace emulated {

template <class T>
class device {
 public:
  using queue = emulated::queue;
  struct memory : cfp::host::memory {
    explicit memory(device&) {}
  };
  struct product {
    cfp::call bound;
    explicit operator bool() const { return bound.op != nullptr; }
    void run(const queue&) const { cfp::host::run_product<T>(bound); }
  };
  struct no_graph {
    explicit operator bool() const { return false; }
  };

  explicit device(cfp::rank_context& rank, unsigned order = 0) : rank_(rank), queue_{order} { openblas_set_num_threads(1); }

  int rank() const { return rank_.rank; }
  const queue& main() const { return queue_; }
  const queue& side() const { return queue_; }
  cfp::host_mover mover(const queue&) const { return {}; }
  const cfp::thread_communicator& among(int axis, const queue&) const { return rank_.axes[static_cast<std::size_t>(axis)]; }
  /// Alone; what follows it is left to kernels.
  product prepare(const cfp::call& c, const cfp::cuda::epilogue& e) const { return e.bias.data == nullptr ? product{c} : product{}; }
  void set(long step, int pass) { state_ = {step, pass}; }
  const cfp::cuda::step_state* state() const { return &state_; }
  void mark(int, const queue&) const {}
  void meet(int, const queue&) const {}
  no_graph record(const std::function<void()>&) const { return {}; }
  void replay(no_graph) const {}
  void wait() const {}

 private:
  cfp::rank_context& rank_;
  queue queue_;
  cfp::cuda::step_state state_;
};

}  // namespace emulated
