// A stream of a rank beside its own thread: what is issued to it runs in order, on a thread of its own.
#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <thread>
#include <vector>

#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#include <cstdint>
#endif

namespace cfp::inline v0_1::host {

/// `issue` is called by one thread.
class side_stream {
 public:
  side_stream() : items_(capacity), thread_([this] { serve(); }) {}
  side_stream(const side_stream&) = delete;
  side_stream& operator=(const side_stream&) = delete;
  ~side_stream() {
    issued_.fetch_or(closing, std::memory_order_release);
    issued_.notify_one();
    thread_.join();
  }

  /// Where `capacity` have been issued that have not run yet it waits: others that issue the same come as far.
  void issue(std::function<void()> work) {
    for (long now = done_.load(std::memory_order_acquire); count_ - now >= capacity;
         now = done_.load(std::memory_order_acquire))
      done_.wait(now, std::memory_order_acquire);
    items_[static_cast<std::size_t>(count_ % capacity)] = std::move(work);
    issued_.store(++count_, std::memory_order_release);
    issued_.notify_one();
  }
  long issued() const { return count_; }

  /// Returns once as many have run as `issued` said. Throws what any of them threw.
  void wait(long upto) const {
    end(upto);
    if (failed_.load(std::memory_order_acquire)) std::rethrow_exception(error_);
  }
  void wait_all() const { wait(count_); }
  /// The same, whatever was thrown.
  void end_all() const { end(count_); }

 private:
  void end(long upto) const {
    for (long now = done_.load(std::memory_order_acquire); now < upto; now = done_.load(std::memory_order_acquire))
      done_.wait(now, std::memory_order_acquire);
  }

  static constexpr long closing = 1l << 62, capacity = 1024;

  // Where threads outnumber cores, a thread that wakes waits until the one that computes has used up its time slice
  // (some milliseconds) unless its own is shorter (Linux 6.12, sched_setattr(2)). Elsewhere, and where that is refused,
  // nothing changes.
  static void take_short_turns() {
#if defined(__linux__) && defined(SYS_sched_setattr)
    struct {
      std::uint32_t size = 48, policy = 0;
      std::uint64_t flags = 0;
      std::int32_t nice = 0;
      std::uint32_t priority = 0;
      std::uint64_t slice = 100000, deadline = 0, period = 0;  // nanoseconds
    } const attributes;
    static_cast<void>(syscall(SYS_sched_setattr, 0, &attributes, 0));
#endif
  }

  void serve() {
    take_short_turns();
    for (long next = 0;;) {
      const long now = issued_.load(std::memory_order_acquire);
      if ((now & ~closing) == next) {
        if (now & closing) return;
        issued_.wait(now, std::memory_order_acquire);
        continue;
      }
      if (!failed_.load(std::memory_order_relaxed)) {
        try {
          items_[static_cast<std::size_t>(next % capacity)]();
        } catch (...) {  // what follows is not run
          error_ = std::current_exception();
          failed_.store(true, std::memory_order_release);
        }
      }
      done_.store(++next, std::memory_order_release);
      done_.notify_one();
    }
  }

  std::vector<std::function<void()>> items_;
  long count_ = 0;
  std::atomic<long> issued_{0}, done_{0};
  std::atomic<bool> failed_{false};
  std::exception_ptr error_;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace cfp
