// Runs kernels written for GPUs on one thread of a CPU: the same source, each thread of a block a fiber that runs until it meets others (a
// sync, a shuffle, a matrix product). It finds wrong values, places outside memory (with a sanitizer), threads that miss a meeting, reads of
// shared memory that nothing wrote (it is filled with what is no number), and, as threads run in an order of choice, most missing syncs.
// Of a GPU it knows what thread.cuh says of each call; it says nothing about speed.
#pragma once

#include <cfp/op/bf16.hpp>
#include <cfp/runtime/cuda/kernel.hpp>

#include <boost/context/fiber.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <exception>
#include <limits>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

namespace emulated {

namespace context = boost::context;
inline constexpr int warp_size = cfp::cuda::warp_size;

/// The threads of a block that is running.
class running_block {
 public:
  running_block(int threads, long shared_bytes, unsigned order)
      : threads_(static_cast<std::size_t>(threads)), warps_((static_cast<std::size_t>(threads) + warp_size - 1) / warp_size) {
    for (std::size_t i = 0; i < threads_.size(); ++i) ++warps_[i / warp_size].members;
    all_.members = threads;
    shared_.resize(static_cast<std::size_t>(shared_bytes) / sizeof(line) + 1);
    bytes_ = shared_bytes;
    for (std::size_t i = 0; i < threads_.size(); ++i) order_.push_back(i);
    std::mt19937 random(order);
    if (order > 0) {
      std::shuffle(order_.begin(), order_.end(), random);
      std::vector<unsigned> rank(warps_.size());
      for (unsigned& r : rank) r = static_cast<unsigned>(random());
      std::stable_sort(order_.begin(), order_.end(), [&](std::size_t a, std::size_t b) {
        return std::pair(rank[a / warp_size], a / warp_size) < std::pair(rank[b / warp_size], b / warp_size);
      });
    }
    ahead_ = order > 0;
  }

  /// body(thread) on every thread; throws what a thread throws, and std::logic_error if some wait for others that do not come.
  template <class Body>
  void run(const Body& body) {
    std::memset(shared_.data(), 0xff, shared_.size() * sizeof(line));  // not a number of any type
    static thread_local std::vector<stack> stacks;  // kept: making them takes longer than most kernels
    if (stacks.size() < threads_.size()) stacks.resize(threads_.size());
    for (const std::size_t i : order_) {
      threads_[i].on = &stacks[i];
      threads_[i].code = context::fiber(std::allocator_arg, stack_of{&stacks[i]}, [this, i, &body](context::fiber&& back) {
        state& t = threads_[i];
        arrive(t, nullptr);
        t.back = std::move(back);
        try {
          body(static_cast<int>(i));
        } catch (const stopped&) {
        } catch (...) {
          if (!error_) error_ = std::current_exception();
        }
        t.done = true;
        leave(t, true);
        return std::move(t.back);
      });
    }
    for (bool moved = true; moved && !error_;) {
      moved = false;
      for (std::size_t from = 0, to = 0; from < order_.size() && !error_; from = to) {
        while (to < order_.size() && order_[to] / warp_size == order_[from] / warp_size) ++to;
        bool again = true;
        for (bool first = true; again && (first || ahead_) && !error_; first = false) {
          again = false;
          for (std::size_t n = from; n < to && !error_; ++n) again = turn(order_[n]) || again;
          moved = moved || again;
        }
      }
    }
    for (std::size_t i = 0; i < threads_.size() && !error_; ++i)
      if (!threads_[i].done)
        error_ = std::make_exception_ptr(std::logic_error("thread " + std::to_string(i) + " waits in " + threads_[i].waits_for->kind + " for threads that do not come"));
    for (std::size_t i = 0; i < threads_.size(); ++i)
      if (!threads_[i].done) resume(i);
    if (error_) std::rethrow_exception(std::exchange(error_, {}));
  }

  std::byte* shared() { return reinterpret_cast<std::byte*>(shared_.data()); }
  /// Throws std::out_of_range unless these bytes are of the block's shared memory.
  void check_shared(const void* at, long bytes) {
    const auto* p = static_cast<const std::byte*>(at);
    if (p < shared() || p + bytes > shared() + bytes_) throw std::out_of_range("a place outside the block's shared memory of " + std::to_string(bytes_) + " bytes");
  }

  void meet_block(int thread, const char* kind) { meet(thread, all_, kind); }
  /// What this lane gives, and where all lanes' are once they have met. Only until the next meeting.
  template <class T>
  std::vector<T> exchange(int thread, const T& mine, const char* kind) {
    group& g = warps_[static_cast<std::size_t>(thread / warp_size)];
    g.given.resize(static_cast<std::size_t>(warp_size) * sizeof(T));
    std::memcpy(g.given.data() + static_cast<std::size_t>(thread % warp_size) * sizeof(T), &mine, sizeof(T));
    meet(thread, g, kind);
    std::vector<T> out(warp_size);
    std::memcpy(out.data(), g.given.data(), g.given.size());
    meet(thread, g, kind);
    return out;
  }
  void meet_warp(int thread, const char* kind) { meet(thread, warps_[static_cast<std::size_t>(thread / warp_size)], kind); }
  /// fold(what all threads give), for all of them.
  template <class Fold>
  float reduce_block(int thread, float mine, const Fold& fold) {
    given_.resize(threads_.size());
    given_[static_cast<std::size_t>(thread)] = mine;
    meet(thread, all_, "reduce");
    if (folded_at_ != all_.meetings) {
      folded_at_ = all_.meetings;
      folded_ = fold(given_);
    }
    const float out = folded_;
    meet(thread, all_, "reduce");
    return out;
  }

 private:
  struct alignas(128) line {
    std::byte bytes[128];
  };
  struct group {
    int members = 0, arrived = 0;
    long meetings = 0;
    const char* kind = "";
    std::vector<std::byte> given{};
  };
  struct stopped {};  // ends a thread that has not come to its end when another fails
  struct stack {
    static constexpr std::size_t size = 128 << 10;
    std::unique_ptr<std::byte[]> owned{new std::byte[size]};
    std::byte* memory = owned.get();
  };
  struct stack_of {  // what Boost asks for one
    stack* of;
    context::stack_context allocate() const {
      context::stack_context out;
      out.size = stack::size;
      out.sp = of->memory + stack::size;
      return out;
    }
    void deallocate(context::stack_context&) const noexcept {}
  };
  struct state {
    context::fiber code, back;
    stack* on = nullptr;
    void* kept = nullptr;  // a sanitizer's view of the stack that is left
    const void* main_stack = nullptr;
    std::size_t main_size = 0;
    bool done = false;
    const group* waits_for = nullptr;
    long since = 0;
  };

  void meet(int thread, group& g, const char* kind) {
    state& t = threads_[static_cast<std::size_t>(thread)];
    if (g.arrived > 0 && std::strcmp(g.kind, kind) != 0)
      throw std::logic_error("thread " + std::to_string(thread) + " comes to " + kind + " while others wait in " + g.kind);
    g.kind = kind;
    if (++g.arrived == g.members) {
      g.arrived = 0;
      ++g.meetings;
      return;
    }
    t.waits_for = &g;
    t.since = g.meetings;
    void* kept = leave(t, false);
    t.back = std::move(t.back).resume();
    arrive(t, kept);
    t.waits_for = nullptr;
    if (error_) throw stopped{};
  }

  // Whether thread i could go on; then it has.
  bool turn(std::size_t i) {
    const state& t = threads_[i];
    if (t.done || (t.waits_for != nullptr && t.waits_for->meetings == t.since)) return false;
    resume(i);
    return true;
  }
  void resume(std::size_t i) {
    state& t = threads_[i];
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_start_switch_fiber(&t.kept, t.on->memory, stack::size);
    t.code = std::move(t.code).resume();
    __sanitizer_finish_switch_fiber(t.kept, nullptr, nullptr);
#else
    t.code = std::move(t.code).resume();
#endif
  }
  // On a thread's own stack: it runs, and gives way to who runs all of them.
  void arrive([[maybe_unused]] state& t, [[maybe_unused]] void* kept) {
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(kept, &t.main_stack, &t.main_size);
#endif
  }
  void* leave([[maybe_unused]] state& t, [[maybe_unused]] bool for_good) {
    void* kept = nullptr;
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_start_switch_fiber(for_good ? nullptr : &kept, t.main_stack, t.main_size);
#endif
    return kept;
  }

  std::vector<state> threads_;
  std::vector<group> warps_;
  group all_;
  std::vector<float> given_;  // to a reduction
  long folded_at_ = -1;
  float folded_ = 0;
  std::vector<line> shared_;
  long bytes_ = 0;
  std::vector<std::size_t> order_;  // of threads, those of a warp together
  bool ahead_ = false;              // a warp goes on until it waits for others, and does not take turns with them
  std::exception_ptr error_;
};

/// As cfp::cuda::gpu_thread; what each call means is said there.
template <int Threads>
class cpu_thread {
 public:
  static constexpr int threads = Threads;

  cpu_thread(running_block& b, long number, long blocks, int index) : b_(&b), number_(number), blocks_(blocks), index_(index) {}

  long block() const { return number_; }
  long blocks() const { return blocks_; }
  int thread() const { return index_; }
  int lane() const { return index_ % warp_size; }
  int warp() const { return index_ / warp_size; }

  void sync() const { b_->meet_block(index_, "sync"); }
  void sync_warp() const { b_->meet_warp(index_, "sync_warp"); }
  std::byte* shared() const { return b_->shared(); }

  template <class T>
  T shuffle(T x, int from) const {
    static_assert(sizeof(T) == 4);
    return b_->exchange(index_, x, "shuffle")[static_cast<std::size_t>(from % warp_size)];
  }
  template <class T>
  T shuffle_xor(T x, int lanes) const {
    static_assert(sizeof(T) == 4);
    return b_->exchange(index_, x, "shuffle_xor")[static_cast<std::size_t>(lane() ^ lanes)];
  }

  template <cfp::reduction R>
  float reduce_warp(float x) const { return fold<R>(b_->exchange(index_, x, "reduce_warp")); }
  template <cfp::reduction R>
  float reduce(float x) const { return b_->reduce_block(index_, x, fold<R>); }

  // Done when waited for, as late as can be: reading too early shows.
  void copy_async(void* to, const void* from) const {
    b_->check_shared(to, 16);
    if (reinterpret_cast<std::uintptr_t>(to) % 16 != 0 || reinterpret_cast<std::uintptr_t>(from) % 16 != 0) throw std::logic_error("copy_async: an address is not a multiple of 16");
    open_.push_back({to, from});
  }
  void copy_or_clear_async(void* to, const void* from, bool there) const { copy_async(to, there ? from : cleared()); }
  void commit() const {
    batches_.push_back(std::move(open_));
    open_.clear();
  }
  template <int N>
  void wait() const {
    while (batches_.size() > N) {
      for (const auto& [to, from] : batches_.front()) std::memcpy(to, from, 16);
      batches_.erase(batches_.begin());
    }
  }

  float exp2(float x) const { return std::exp2(x); }
  template <class T>
  std::uint32_t narrow(float low, float high) const {
    return std::bit_cast<std::uint16_t>(T(low)) | static_cast<std::uint32_t>(std::bit_cast<std::uint16_t>(T(high))) << 16;
  }

  void load_matrices(std::uint32_t (&out)[4], const void* row) const { load(out, row, false); }
  void load_matrices_transposed(std::uint32_t (&out)[4], const void* row) const { load(out, row, true); }

  template <class T>
  void multiply_add(float (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) const {
    struct operands {
      std::uint32_t a[4], b[2];
    };
    operands mine{};
    std::copy_n(a, 4, mine.a);
    std::copy_n(b, 2, mine.b);
    const std::vector<operands> all = b_->exchange(index_, mine, "multiply_add");
    const auto number = [](std::uint32_t two, int which) {
      const auto bits = static_cast<std::uint16_t>(two >> (16 * which));
      return static_cast<float>(std::bit_cast<T>(bits));
    };
    for (int i = 0; i < 4; ++i) {
      const int row = lane() / 4 + i / 2 * 8, column = lane() % 4 * 2 + i % 2;
      for (int k = 0; k < 16; ++k) {
        const operands& of_row = all[static_cast<std::size_t>(row % 8 * 4 + k % 8 / 2)];
        const operands& of_column = all[static_cast<std::size_t>(column * 4 + k % 8 / 2)];
        d[i] += number(of_row.a[row / 8 + k / 8 * 2], k % 2) * number(of_column.b[k / 8], k % 2);
      }
    }
  }

 private:
  template <cfp::reduction R>
  static float fold(const std::vector<float>& x) {
    float out = x[0];
    for (std::size_t i = 1; i < x.size(); ++i) out = cfp::cuda::combine<R>(out, x[i]);
    return out;
  }
  void load(std::uint32_t (&out)[4], const void* row, bool transposed) const {
    b_->check_shared(row, 16);
    if (reinterpret_cast<std::uintptr_t>(row) % 16 != 0) throw std::logic_error("load_matrices: an address is not a multiple of 16");
    const std::vector<const void*> rows = b_->exchange(index_, row, "load_matrices");
    for (std::size_t matrix = 0; matrix < 4; ++matrix) {
      const auto element = [&](int r, int c) {
        std::uint16_t x;
        std::memcpy(&x, static_cast<const std::byte*>(rows[matrix * 8 + static_cast<std::size_t>(r)]) + 2 * c, 2);
        return static_cast<std::uint32_t>(x);
      };
      const int outer = lane() / 4, inner = lane() % 4 * 2;
      out[matrix] = transposed ? element(inner, outer) | element(inner + 1, outer) << 16 : element(outer, inner) | element(outer, inner + 1) << 16;
    }
    b_->meet_warp(index_, "load_matrices");  // before the rows are written again
  }

  static const void* cleared() {
    alignas(16) static constexpr std::byte zero[16] = {};
    return zero;
  }
  struct copy {
    void* to;
    const void* from;
  };
  running_block* b_;
  long number_, blocks_;
  int index_;
  mutable std::vector<copy> open_;
  mutable std::vector<std::vector<copy>> batches_;
};

/// Runs a grid of blocks, one after another. `order`: 0, threads take turns by number; else they and the warps come in an order of that number,
/// and each warp goes as far ahead as it can: what it reads that others had yet to write, or writes that they had yet to read, shows.
template <class Kernel>
void launch(const Kernel& k, long blocks, long shared_bytes = 0, unsigned order = 0) {
  for (long i = 0; i < blocks; ++i) {
    running_block b(Kernel::threads, shared_bytes, order);
    b.run([&](int index) { k(cpu_thread<Kernel::threads>(b, i, blocks, index)); });
  }
}

}  // namespace emulated
