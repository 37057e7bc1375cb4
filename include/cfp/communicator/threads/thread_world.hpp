// Ranks as threads of one process: the groups in which they meet, and what happens when one of them fails.
//
// A collective has three steps: a rank enters (publishes its call and buffers, waits for the others), copies
// (reads and writes the others' buffers; this neither waits nor throws), and finishes (waits until the others
// have copied). No rank may touch a buffer of a rank that has unwound its stack, hence two rules:
//   - Whether a round is entered is decided once, for all. `entered` holds the number of arrivals and a bit,
//     frozen, in one word; a failure sets the bit, and then no arrival counts any more. Whoever reads the
//     word sees the same: either all have arrived, and every rank copies and finishes although the world has
//     failed (it throws from its next collective), or no rank will ever copy, and each may throw at once.
//   - `finished` is never interrupted. It need not be: all its ranks are copying or have copied.
// A rank that fails by itself, outside a collective, has finished its last one and holds no one up.
#pragma once

#include <cfp/communicator/threads/thread_group.hpp>
#include <cfp/core/bad_input.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace cfp::inline v0_1 {

/// The state that ranks share: one group of all, and for each mesh axis, and each set of several, the groups of ranks
/// that differ only in their coordinates on it. Ranks are row-major in the mesh: the last axis varies fastest. Throws
/// bad_input for an axis smaller than 1. `run_ranks` and `rank_pool` drive it; threads driven by
/// other means must end with `leave` or `fail`.
class thread_world : public rank_grid {
 public:
  static constexpr bool one_process = true;

  explicit thread_world(std::vector<int> mesh) : rank_grid(std::move(mesh)) {
    left_.resize(static_cast<std::size_t>(size()));
    group_of_.assign(left_.size(),
                     std::vector<detail::thread_group*>(static_cast<std::size_t>(groups_and_pairs() + 1)));
    for (int group = whole; group < groups_and_pairs(); ++group)
      for (int r = 0; r < size(); ++r)
        if (members(r, group).front() == r) add_group(group, members(r, group));
    // When there are more ranks than cores, the rank one waits for may need this very core.
    if (size() > static_cast<int>(std::thread::hardware_concurrency())) spins_ = 8;
  }

  /// How long a rank waits for the others before it fails. Not while ranks run.
  void set_deadline(std::chrono::nanoseconds limit) { deadline_ = limit; }

  /// From now on collectives on an axis take at least as long as over this link. Not while ranks run. Throws
  /// bad_input for an axis there is not, a latency that is negative, or a bandwidth that is not positive.
  void set_link(int axis, const rank_link& l) {
    if (axis < whole || axis >= static_cast<int>(mesh().size()))
      throw bad_input("a mesh of " + std::to_string(mesh().size()) + " axes has no axis " + std::to_string(axis));
    if (!(l.latency >= 0 && l.latency < 3600))
      throw bad_input("the latency of a link is from 0 up to an hour, got: " + std::to_string(l.latency) + " s");
    if (!(l.bandwidth >= 1))
      throw bad_input("the bandwidth of a link is at least 1 byte per second, got: " + std::to_string(l.bandwidth));
    for (int r = 0; r < size(); ++r) {
      group(r, axis).joined_by = l;
      if (axis == whole) continue;
      const int n = mesh()[static_cast<std::size_t>(axis)];
      for (int from = 0; from < n; ++from)
        for (int to = 0; to < n; ++to) group(r, pair(axis, from, to)).joined_by = l;
    }
  }

  /// A rank ends with an error: whoever waits in a collective, or calls one later, throws communicator_error.
  /// As a `consequence` of another's error it adds where that met it, "stopped in ...".
  void fail(int rank, const std::string& what, bool consequence = false) {
    const rank_error e = detail::failure(rank, what, consequence);
    const std::lock_guard lock(mutex_);
    record(e.rank, e.message, e.consequence);
  }

  /// A rank ends well: whoever waits for it in a collective, or calls one later that needs it, throws.
  void leave(int rank) {
    const std::lock_guard lock(mutex_);
    left_[static_cast<std::size_t>(rank)] = true;
    for (detail::thread_group* g : group_of_[static_cast<std::size_t>(rank)])
      g->entered.fetch_or(detail::thread_group::frozen);
  }

  /// Whether a rank has failed.
  bool stopped() const {
    const std::lock_guard lock(mutex_);
    return !errors_.empty();
  }

  /// The error of each rank that failed, in order of time: the first cause first.
  std::vector<rank_error> errors() const {
    const std::lock_guard lock(mutex_);
    return errors_;
  }

  /// Begins anew, without errors and with nothing counted. Not while ranks run.
  void reset() {
    errors_.clear();
    left_.assign(left_.size(), false);
    for (detail::thread_group& g : groups_) {
      g.entered = 0;
      g.finished = 0;
      for (detail::thread_slot& s : g.slots) {
        s.round = 0;
        s.counted = {};
      }
    }
  }

  detail::thread_group& group(int rank, int number) {
    return *group_of_[static_cast<std::size_t>(rank)][static_cast<std::size_t>(number + 1)];
  }

  /// Returns once all members have entered with equal calls; then each must copy and `finish`.
  void enter(detail::thread_group& g, int member, const detail::collective_call& call, const void* in, void* out) {
    detail::thread_slot& mine = g.slots[static_cast<std::size_t>(member)];
    std::uint64_t word = g.entered.load(std::memory_order_acquire);
    // Before the slot is written: after a mismatch others may still be reading it.
    if (word & g.frozen) stop(g, member, call);
    mine.call = call;
    mine.in = in;
    mine.out = out;
    const std::uint64_t round = mine.round.load(std::memory_order_relaxed) + 1;
    mine.round.store(round, std::memory_order_relaxed);
    while (!g.entered.compare_exchange_weak(word, word + 1, std::memory_order_acq_rel, std::memory_order_acquire))
      if (word & g.frozen) stop(g, member, call);

    const auto all_here = [&] {
      const std::uint64_t now = g.entered.load(std::memory_order_acquire);
      if (g.complete(now, round)) return true;
      if (now & g.frozen) stop(g, member, call);
      return false;
    };
    wait(all_here, [&] { late(g, member, round); });
    for (const detail::thread_slot& other : g.slots)
      if (!(other.call == g.slots.front().call)) mismatch(g, member, other);
  }

  /// Returns once all members have copied.
  void finish(detail::thread_group& g, int member) noexcept {
    const std::uint64_t all =
        g.slots[static_cast<std::size_t>(member)].round.load(std::memory_order_relaxed) * g.slots.size();
    g.finished.fetch_add(1, std::memory_order_acq_rel);
    wait([&] { return g.finished.load(std::memory_order_acquire) >= all; }, [] {});
  }

 private:
  void add_group(int number, const std::vector<int>& of) {
    groups_.emplace_back(where(number), of);
    for (const int r : of)
      group_of_[static_cast<std::size_t>(r)][static_cast<std::size_t>(number + 1)] = &groups_.back();
  }

  template <class Done, class Late>
  void wait(Done done, Late too_late) const {
    for (int i = 0; i < spins_; ++i) {
      if (done()) return;
      detail::relax_cpu();
    }
    const auto start = std::chrono::steady_clock::now();
    while (!done()) {
      if (std::chrono::steady_clock::now() - start >= deadline_) too_late();
      std::this_thread::yield();
    }
  }

  /// Under the lock, so that whoever sees a frozen group and takes the lock finds the cause.
  /// Of a rank's errors the first is kept.
  void record(int rank, std::string message, bool consequence) {
    for (const rank_error& e : errors_)
      if (e.rank == rank) return;
    errors_.push_back({rank, std::move(message), consequence});
    for (detail::thread_group& g : groups_) g.entered.fetch_or(g.frozen);
  }

  /// The group is frozen: another rank failed, or a member left.
  [[noreturn]] void stop(const detail::thread_group& g, int member, const detail::collective_call& call) {
    const std::lock_guard lock(mutex_);
    const int rank = g.ranks[static_cast<std::size_t>(member)];
    const std::string me = "rank " + std::to_string(rank), in = call.text() + g.where;
    if (!errors_.empty()) {
      const std::string brief = me + " stopped in " + in, cause = errors_.front().message;
      record(rank, brief, true);
      throw communicator_error(brief + ": " + cause);
    }
    const auto gone =
        std::find_if(g.ranks.begin(), g.ranks.end(), [this](int r) { return left_[static_cast<std::size_t>(r)]; });
    const std::string message = "rank " + std::to_string(*gone) + " left while " + me + " waits in " + in;
    record(rank, message, false);
    throw communicator_error(message);
  }

  /// All members find the same: each compares the slots in the same order, and none is written any more.
  [[noreturn]] void mismatch(const detail::thread_group& g, int member, const detail::thread_slot& other) {
    const std::lock_guard lock(mutex_);
    const auto index = static_cast<std::size_t>(&other - g.slots.data());
    const detail::collective_call &a = g.slots.front().call, &b = other.call;
    const bool same_text = a.text() == b.text();
    const std::string message = "rank " + std::to_string(g.ranks.front()) + " calls " + a.text() +
                                (same_text ? a.details() : "") + " while rank " + std::to_string(g.ranks[index]) +
                                " calls " + b.text() + (same_text ? b.details() : "") + g.where;
    const int rank = g.ranks[static_cast<std::size_t>(member)];
    if (errors_.empty()) record(rank, message, false);
    const std::string mine = g.slots[static_cast<std::size_t>(member)].call.text() + g.where;
    record(rank, "rank " + std::to_string(rank) + " stopped in " + mine, true);
    throw communicator_error(message);
  }

  /// The deadline has passed. Returns if the last member arrives, or is about to, after all.
  void late(detail::thread_group& g, int member, std::uint64_t round) {
    const std::lock_guard lock(mutex_);
    std::string missing;
    for (std::size_t i = 0; i < g.slots.size(); ++i)
      if (g.slots[i].round.load(std::memory_order_relaxed) < round)
        missing += (missing.empty() ? "rank " : ", rank ") + std::to_string(g.ranks[i]);
    if (missing.empty()) return;
    std::uint64_t word = g.entered.load(std::memory_order_acquire);
    do {
      if (g.complete(word, round) || (word & g.frozen)) return;
    } while (!g.entered.compare_exchange_weak(word, word | g.frozen));
    const int rank = g.ranks[static_cast<std::size_t>(member)];
    const std::string message = "rank " + std::to_string(rank) + " waited " + detail::milliseconds(deadline_) + " in " +
                                g.slots[static_cast<std::size_t>(member)].call.text() + g.where + " for " + missing;
    record(rank, message, false);
    throw communicator_error(message);
  }

  int spins_ = 64;  // some microseconds
  std::chrono::nanoseconds deadline_ = std::chrono::minutes(10);
  std::deque<detail::thread_group> groups_;                   // the first is of all ranks
  std::vector<std::vector<detail::thread_group*>> group_of_;  // by rank, then number + 1
  mutable std::mutex mutex_;                                  // of what follows
  std::vector<rank_error> errors_;
  std::vector<bool> left_;
};

}  // namespace cfp
