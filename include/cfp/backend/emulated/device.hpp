// A GPU that is emulated, as a device: kernels thread by thread, products by the host's BLAS. It says nothing about
// speed.
#pragma once

#include <cfp/backend/cuda/kernel/coder_kernels.hpp>
#include <cfp/backend/cuda/kernel/scan_kernel.hpp>
#include <cfp/backend/cuda/kernel/step_state.hpp>
#include <cfp/backend/cuda/make_ready.hpp>
#include <cfp/backend/emulated/kernels.hpp>
#include <cfp/backend/engine.hpp>
#include <cfp/backend/host/memory.hpp>
#include <cfp/backend/host/product_kernel.hpp>
#include <cfp/backend/host/stored_narrow.hpp>
#include <cfp/backend/nobody.hpp>
#include <cfp/backend/own_kernels.hpp>
#include <cfp/backend/tick_clock.hpp>
#include <cfp/core/bad_input.hpp>
#include <cfp/core/device_error.hpp>

#include <algorithm>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace cfp::inline v0_1::emulated {

/// What ranks share.
template <class T>
struct parts : cuda::parts<T, queue> {
  unsigned order = 0;      ///< in which threads take turns: see `launch`
  own_kernels for_host{};  ///< of operators that the kernels for GPUs lack

  using cuda::parts<T, queue>::parts;
  bool has(const op_info& op) const { return by_host(op) != nullptr || cuda::parts<T, queue>::has(op); }
  /// The host's kernels of an operator, or none.
  const own_kernel* by_host(const op_info& op) const {
    for (const own_kernel& k : for_host)
      if (k.op == &op) return &k;
    return nullptr;
  }
};

/// All but the ranks it works with. Numbers are stored as T.
template <class T>
class gpu : public tick_clock {
 public:
  static constexpr bool immediate = true;
  using number = T;
  using queue = emulated::queue;
  using parts = emulated::parts<T>;

  struct memory : host::memory {
    explicit memory(gpu& g) : host::memory{&g.use_} {}
  };
  struct product {
    call bound;
    explicit operator bool() const { return bound.op != nullptr; }
    void run(const queue&) const { host::stored_as<T, &host::run_product<wide_t<T>>>()(bound); }
  };
  struct no_recording {
    explicit operator bool() const { return false; }
  };

  explicit gpu(const parts& shared) : parts_(shared), queue_{shared.order} {
    openblas_set_num_threads(1);  // ranks are the parallelism
  }

  memory_use& use() { return use_; }
  const memory_use& use() const { return use_; }

  const queue& main() const { return queue_; }
  const queue& side(int) const { return queue_; }
  void put(const queue& q, const std::function<void(const queue&)>& work) const { work(q); }
  void mark(int, const queue&) const {}
  void meet(int, const queue&) const {}
  host_mover mover(const queue&) const { return {}; }
  cuda::coder<queue> coder(const queue& q) const { return cuda::coder<queue>(q); }
  cuda::scanner<queue> scanner(const queue& q) const { return cuda::scanner<queue>(q); }
  void wait() const {}
  void fail(const std::string&) const {}
  no_recording record(const std::function<void()>&) const { return {}; }
  void replay(no_recording) const {}

  void set(long step) { state_.step = step; }
  void set_pass(int pass, bool first) { state_.pass = pass, state_.first = first; }
  const cuda::step_state* state() const { return &state_; }

  ready<queue> make_ready(const places& where, const instruction& i) {
    if (i.kind != instruction::narrow && i.fusion < 0)
      if (const own_kernel* const k = parts_.by_host(*where.g.at(i.op).op); k != nullptr)
        return by_host(*k, where.bound(i));
    return cuda::make_ready<gpu>(*this, parts_, where, i);
  }
  /// Alone; what follows it is left to kernels. Like cuBLASLt, it multiplies numbers of one type.
  product prepare(const call& c, const cuda::epilogue& e) const {
    if (c.operand[0].wide != c.operand[1].wide && sizeof(T) < 4)
      throw device_error("a product of numbers of two types");
    return e.any() ? product{} : product{c};
  }
  void sweep() const {}
  double clock_MHz() const { return 0; }

 private:
  ready<queue> by_host(const own_kernel& k, const call& bound) const {
    void (*const run)(const call&) = std::is_same_v<T, float>  ? k.in_float32
                                     : std::is_same_v<T, bf16> ? k.in_bfloat16
                                                               : nullptr;
    if (run == nullptr) throw bad_input("operator '" + std::string(k.op->label) + "' has no kernel for such numbers");
    return {[c = bound, run, s = &state_](const queue&) mutable {
      c.step = s->step;
      c.pass = s->pass;
      c.first = s->first;
      run(c);
    }};
  }

  const parts parts_;
  memory_use use_;
  queue queue_;
  cuda::step_state state_{};
};

/// The GPU of a rank, its collectives those of the `Context`: of a thread, of a process.
template <class T, class Context>
class rank_gpu : public gpu<T> {
 public:
  rank_gpu(const typename gpu<T>::parts& shared, Context& context) : gpu<T>(shared), context_(context) {}

  int rank() const { return context_.rank; }
  Context& context() { return context_; }
  const auto& among(unsigned axes, const queue&) const { return context_.along(axes); }
  const auto& pair(int axis, int with, bool sends, const queue&) const { return context_.pair(axis, with, sends); }
  traffic counted(int group) const { return context_.group(group).counted(); }
  void reset_counted() { context_.reset_counted(); }

 private:
  Context& context_;
};

/// One alone, in the place of a rank of any mesh: all but its collectives can be run.
template <class T>
class lone_gpu : public gpu<T> {
 public:
  explicit lone_gpu(const typename gpu<T>::parts& shared = typename gpu<T>::parts{}) : gpu<T>(shared) {}

  /// Stands in for this rank from now on.
  void be(int rank) { rank_ = rank; }
  int rank() const { return rank_; }
  nobody among(unsigned, const queue&) const { return {}; }
  nobody pair(int, int, bool, const queue&) const { return {}; }

 private:
  int rank_ = 0;
};

}  // namespace cfp::emulated
