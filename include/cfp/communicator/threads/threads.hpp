// Collectives between ranks that are threads of one process: one rank's end of a group of ranks.
#pragma once

#include <cfp/communicator/threads/thread_world.hpp>

#include <algorithm>
#include <chrono>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>
#include <type_traits>

namespace cfp::inline v0_1 {

/// One rank's end of a group: a handle, cheap to copy, valid as long as its world. `count` is in elements.
/// The members must make the same calls in the same order, each from its own thread, on buffers of their own;
/// buffers in and out do not overlap, except where said. Nothing is allocated.
///
/// Reductions combine in the order of the ranks, so the result is reproducible and the same on all of them.
/// In `max` and `min` a NaN of any rank wins.
///
/// Throws communicator_error if a rank of the world has failed, if a member has left, if the members make
/// different calls, or if one does not come within the deadline. Buffers are then unchanged, and the world
/// stays failed, even if the error is caught.
class thread_communicator {
 public:
  thread_communicator(thread_world& world, int rank, int group = thread_world::whole)
      : world_(&world), group_(&world.group(rank, group)), rank_(world.coordinate(rank, group)) {}

  int rank() const { return rank_; }  ///< in the group
  int size() const { return static_cast<int>(group_->ranks.size()); }

  /// data = the members' data combined.
  template <reducible_element T>
  void all_reduce(T* data, std::size_t count, reduction by) const {
    meet<T>(collective_kind::all_reduce, count, {.combine = by}, data, data, [&] {
      // Each member combines its chunk and writes it to all. Chunks are whole cache lines of aligned buffers.
      constexpr std::size_t line = std::max<std::size_t>(1, detail::cache_line / sizeof(T));
      const std::size_t lines = (count + line - 1) / line;
      const std::size_t first = std::min(count, lines * index() / members() * line);
      const std::size_t last = std::min(count, lines * (index() + 1) / members() * line);
      detail::fold_blocks<T>(by, inputs<T>(), members(), first, last - first,
                             [&](const T* folded, std::size_t at, std::size_t length) {
                               for (const detail::thread_slot& s : group_->slots)
                                 std::copy_n(folded, length, static_cast<T*>(s.out) + first + at);
                             });
    });
  }

  /// out = the members' `in`, one after another: size() * count elements. `in` may be its own place in `out`.
  template <movable_element T>
  void all_gather(const T* in, T* out, std::size_t count) const {
    meet<T>(collective_kind::all_gather, count, {}, in, out, [&] {
      for (std::size_t i = 0; i < members(); ++i) copy(input<T>(i), out + i * count, count);
    });
  }

  /// out = this rank's part of the members' `in` combined, which is size() * count elements. `out` may be
  /// that part of `in`.
  template <reducible_element T>
  void reduce_scatter(const T* in, T* out, std::size_t count, reduction by) const {
    meet<T>(collective_kind::reduce_scatter, count, {.combine = by}, in, out, [&] {
      detail::fold_blocks<T>(
          by, inputs<T>(), members(), index() * count, count,
          [&](const T* folded, std::size_t at, std::size_t length) { std::copy_n(folded, length, out + at); });
    });
  }

  /// Part i of `out` = this rank's part of member i's `in`; each has size() parts of `count` elements.
  template <movable_element T>
  void all_to_all(const T* in, T* out, std::size_t count) const {
    meet<T>(collective_kind::all_to_all, count, {}, in, out, [&] {
      for (std::size_t i = 0; i < members(); ++i) copy(input<T>(i) + index() * count, out + i * count, count);
    });
  }

  /// data = the root's data; `root` is a rank of the group.
  template <movable_element T>
  void broadcast(T* data, std::size_t count, int root) const {
    detail::check_root(*world_, group_->ranks[index()], root, size());
    meet<T>(collective_kind::broadcast, count, {.root = root}, data, data,
            [&] { copy(input<T>(static_cast<std::size_t>(root)), data, count); });
  }

  /// In a group of two: to the other, which calls `receive`. Both return once it has the data. It is counted as they
  /// both say: it may be a part of a shift or an all-scan.
  template <movable_element T>
  void send(const T* data, std::size_t count, collective_kind as = collective_kind::send) const {
    meet<T>(as, count, {.root = rank_}, data, nullptr, [] {});
  }
  template <movable_element T>
  void receive(T* data, std::size_t count, collective_kind as = collective_kind::send) const {
    const int other = 1 - rank_;
    meet<T>(as, count, {.root = other}, nullptr, data,
            [&] { copy(input<T>(static_cast<std::size_t>(other)), data, count); });
  }

  /// Returns once all members have called it.
  void barrier() const {
    world_->enter(*group_, rank_, {}, nullptr, nullptr);
    world_->finish(*group_, rank_);
  }

  /// This rank's completed calls on this group, since the job began or the last reset. Of `count` elements of
  /// B bytes in all, n ranks in a ring each send 2 (n-1)/n B in all_reduce, (n-1)/n B in broadcast, and (n-1)
  /// B in the others (each call rounded down); in send who sends sends B, and the other nothing.
  const traffic& counted() const { return slot().counted; }
  void reset_counted() const { slot().counted = {}; }

 private:
  struct options {
    reduction combine = reduction::sum;
    int root = -1;
  };

  std::size_t members() const { return group_->slots.size(); }
  std::size_t index() const { return static_cast<std::size_t>(rank_); }
  detail::thread_slot& slot() const { return group_->slots[index()]; }

  template <class T>
  const T* input(std::size_t member) const {
    return static_cast<const T*>(group_->slots[member].in);
  }

  template <class T>
  auto inputs() const {
    return [this](std::size_t member) { return input<T>(member); };
  }

  template <class T>
  static void copy(const T* from, T* to, std::size_t count) {
    if (from != to) std::copy_n(from, count, to);
  }

  template <class T, class Copy>
  void meet(collective_kind kind, std::size_t count, options o, const void* in, void* out, Copy copies) const {
    world_->enter(*group_, rank_, detail::call_of<T>(kind, count, o.combine, o.root), in, out);
    const auto begin = std::chrono::steady_clock::now();
    copies();
    world_->finish(*group_, rank_);
    const std::int64_t sent = slot().counted.count(kind, count * sizeof(T), members(), o.root == rank_);
    const bool crosses = is_between_two(kind);  // it takes as long for who receives it
    const std::int64_t waited = crosses ? static_cast<std::int64_t>(count * sizeof(T)) : sent;
    if (members() > 1) pass_time(begin, group_->joined_by.seconds(waited));
  }

  // Sleeps, but for the end, which a sleep would miss.
  static void pass_time(std::chrono::steady_clock::time_point begin, double seconds) {
    if (!(seconds > 0)) return;
    const auto end = begin + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                                 std::chrono::duration<double>(std::min(seconds, 1e6)));
    std::this_thread::sleep_until(end - std::chrono::microseconds(100));
    while (std::chrono::steady_clock::now() < end) std::this_thread::yield();
  }

  thread_world* world_;
  detail::thread_group* group_;
  int rank_;
};

}  // namespace cfp
