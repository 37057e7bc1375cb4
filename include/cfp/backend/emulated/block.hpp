// A block of threads of a GPU on one thread of a CPU: each a fiber that runs until it meets others (a sync, a shuffle,
// a matrix product). It finds threads that miss a meeting, reads of shared memory that nothing wrote (it is filled with
// what is no number), and, as threads run in an order of choice, most missing syncs.
#pragma once

#include <cfp/backend/cuda/kernel/kernel.hpp>
#include <cfp/backend/emulated/fiber.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace cfp::inline v0_1::emulated {

inline constexpr int warp_size = cuda::warp_size;

/// The threads of a block that is running.
class running_block {
 public:
  running_block(int threads, long shared_bytes, unsigned order)
      : threads_(static_cast<std::size_t>(threads)),
        warps_((static_cast<std::size_t>(threads) + warp_size - 1) / warp_size) {
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

  /// body(thread) on every thread; throws what a thread throws, and std::logic_error if some wait for others that do
  /// not come.
  template <class Body>
  void run(const Body& body) {
    std::memset(shared_.data(), 0xff, shared_.size() * sizeof(line));  // not a number of any type
    std::vector<fiber::stack>& stacks = fiber::stacks(threads_.size());
    for (const std::size_t i : order_)
      threads_[i].code.start(stacks[i], [this, i, &body] {
        try {
          body(static_cast<int>(i));
        } catch (const stopped&) {
        } catch (...) {
          if (!error_) error_ = std::current_exception();
        }
      });
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
      if (!threads_[i].code.done())
        error_ =
            std::make_exception_ptr(std::logic_error("thread " + std::to_string(i) + " waits in " +
                                                     threads_[i].waits_for->kind + " for threads that do not come"));
    for (std::size_t i = 0; i < threads_.size(); ++i)
      if (!threads_[i].code.done()) threads_[i].code.resume();
    if (error_) std::rethrow_exception(std::exchange(error_, {}));
  }

  std::byte* shared() { return reinterpret_cast<std::byte*>(shared_.data()); }
  /// Throws std::out_of_range unless these bytes are of the block's shared memory.
  void check_shared(const void* at, long bytes) {
    const auto* p = static_cast<const std::byte*>(at);
    if (p < shared() || p + bytes > shared() + bytes_)
      throw std::out_of_range("a place outside the block's shared memory of " + std::to_string(bytes_) + " bytes");
  }

  void meet_block(int thread, const char* kind) { meet(thread, all_, kind); }
  /// What this lane gives, and where all lanes' are once they have met. Only until the next meeting.
  template <class T>
  std::array<T, warp_size> exchange(int thread, const T& mine, const char* kind) {
    group& g = warps_[static_cast<std::size_t>(thread / warp_size)];
    g.given.resize(static_cast<std::size_t>(warp_size) * sizeof(T));
    std::memcpy(g.given.data() + static_cast<std::size_t>(thread % warp_size) * sizeof(T), &mine, sizeof(T));
    meet(thread, g, kind);
    std::array<T, warp_size> out;
    std::memcpy(out.data(), g.given.data(), g.given.size());
    meet(thread, g, kind);
    return out;
  }
  void meet_warp(int thread, const char* kind) {
    meet(thread, warps_[static_cast<std::size_t>(thread / warp_size)], kind);
  }
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
  struct state {
    fiber code;
    const group* waits_for = nullptr;
    long since = 0;
  };

  void meet(int thread, group& g, const char* kind) {
    state& t = threads_[static_cast<std::size_t>(thread)];
    if (g.arrived > 0 && std::strcmp(g.kind, kind) != 0)
      throw std::logic_error("thread " + std::to_string(thread) + " comes to " + kind + " while others wait in " +
                             g.kind);
    g.kind = kind;
    if (++g.arrived == g.members) {
      g.arrived = 0;
      ++g.meetings;
      return;
    }
    t.waits_for = &g;
    t.since = g.meetings;
    t.code.pause();
    t.waits_for = nullptr;
    if (error_) throw stopped{};
  }

  // Whether thread i could go on; then it has.
  bool turn(std::size_t i) {
    state& t = threads_[i];
    if (t.code.done() || (t.waits_for != nullptr && t.waits_for->meetings == t.since)) return false;
    t.code.resume();
    return true;
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

}  // namespace cfp::emulated
