// Runs one function on every rank of a mesh, a thread each; the errors of all ranks arrive as one exception.
#pragma once

#include <cfp/communicator/threads/threads.hpp>
#include <cfp/core/bad_input.hpp>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace cfp::inline v0_1 {

using rank_context = rank_context_of<thread_world, thread_communicator>;

/// Threads, one per rank of a mesh, that run one job after another.
class rank_pool {
 public:
  /// The sizes of the mesh axes; ranks are row-major. Throws bad_input for a size below 1.
  explicit rank_pool(std::vector<int> mesh) : world_(std::move(mesh)) {
    for (int r = 0; r < size(); ++r) contexts_.emplace_back(world_, r);
    try {
      for (int r = 0; r < size(); ++r)
        threads_.emplace_back([this, r] { serve(contexts_[static_cast<std::size_t>(r)]); });
    } catch (...) {  // the system has no thread to give
      close();
      throw;
    }
  }
  explicit rank_pool(int ranks) : rank_pool(std::vector<int>{ranks}) {}
  rank_pool(const rank_pool&) = delete;
  rank_pool& operator=(const rank_pool&) = delete;
  ~rank_pool() { close(); }

  int size() const { return world_.size(); }
  const std::vector<int>& mesh() const { return world_.mesh(); }
  int on_this_machine() const { return size(); }  ///< ranks
  bool is_first() const { return true; }          ///< this process, of those that have ranks

  /// How long a rank waits for others in a collective before it fails: 10 minutes unless set. Between jobs.
  void set_deadline(std::chrono::nanoseconds limit) { world_.set_deadline(limit); }

  /// From now on collectives on a mesh axis take at least as long as over this link. Throws bad_input if a job
  /// is running, else as `thread_world::set_link`.
  void set_link(int axis, const rank_link& l) {
    const std::lock_guard lock(mutex_);
    if (busy_) throw bad_input("a link is set between jobs");
    world_.set_link(axis, l);
  }

  /// Calls f(rank_context&) on every rank at the same time, and returns when all have ended. Throws
  /// rank_failure if any has failed; the pool can then run the next job. Throws bad_input if a job is
  /// running.
  template <class F>
  void run(F&& f) {
    auto job = [&f](rank_context& context) { f(context); };
    run_job(&job, [](void* erased, rank_context& context) { (*static_cast<decltype(job)*>(erased))(context); });
  }

 private:
  using entry = void (*)(void* job, rank_context&);

  void run_job(void* job, entry call) {
    std::unique_lock lock(mutex_);
    if (busy_) throw bad_input("a rank pool runs one job at a time");
    busy_ = true;
    world_.reset();
    job_ = job;
    call_ = call;
    running_ = size();
    ++jobs_;
    start_.notify_all();
    done_.wait(lock, [this] { return running_ == 0; });
    busy_ = false;
    std::vector<rank_error> errors = world_.errors();
    if (!errors.empty()) throw rank_failure(std::move(errors));
  }

  void serve(rank_context& context) {
    std::unique_lock lock(mutex_);
    for (std::uint64_t served = 0;; ++served) {
      start_.wait(lock, [&] { return closing_ || jobs_ > served; });
      if (closing_) return;
      lock.unlock();
      run_rank(context);
      lock.lock();
      if (--running_ == 0) done_.notify_one();
    }
  }

  void run_rank(rank_context& context) {
    try {
      call_(job_, context);
      world_.leave(context.rank);
    } catch (const std::exception& e) {
      world_.fail(context.rank, e.what());
    } catch (...) {
      world_.fail(context.rank, "an exception that is no std::exception");
    }
  }

  void close() {
    {
      const std::lock_guard lock(mutex_);
      closing_ = true;
    }
    start_.notify_all();
    for (std::thread& t : threads_) t.join();
  }

  thread_world world_;
  std::vector<rank_context> contexts_;
  std::mutex mutex_;  // of what follows, but for the threads
  std::condition_variable start_, done_;
  std::uint64_t jobs_ = 0;  // begun so far
  int running_ = 0;         // ranks still in the current job
  bool busy_ = false;       // until the caller has collected the errors
  bool closing_ = false;
  void* job_ = nullptr;
  entry call_ = nullptr;
  std::vector<std::thread> threads_;
};

/// Calls f(rank_context&) on every rank of a mesh, each on a thread of its own. Throws as `rank_pool` does.
template <class F>
void run_ranks(std::vector<int> mesh, F&& f, std::chrono::nanoseconds deadline = std::chrono::minutes(10)) {
  rank_pool pool(std::move(mesh));
  pool.set_deadline(deadline);
  pool.run(f);
}

/// The same for a mesh of one axis.
template <class F>
void run_ranks(int ranks, F&& f, std::chrono::nanoseconds deadline = std::chrono::minutes(10)) {
  run_ranks(std::vector<int>{ranks}, std::forward<F>(f), deadline);
}

}  // namespace cfp
