// Collectives between ranks that are processes, without MPI: this rank's end of a group of ranks.
#pragma once

#include <cfp/communicator/launched/launched_world.hpp>

#include <algorithm>
#include <cstddef>

namespace cfp::inline v0_1 {

/// One rank's end of a group of launched processes: a handle, cheap to copy, valid as long as its world. What is
/// promised is what `thread_communicator` promises, to the bit: reductions combine in the order of the ranks. Rank 0's
/// process holds what all members give, of all_reduce and broadcast 16 MiB at a time.
///
/// Throws communicator_error as `thread_communicator` does; the world can then only report and end. If a process dies
/// meanwhile, what is larger than 16 MiB may have been combined in part.
class launched_communicator {
 public:
  launched_communicator(launched_world& world, int, int group = launched_world::whole)
      : world_(&world), group_(&world.group(group)), rank_(world.coordinate(world.rank(), group)) {}

  int rank() const { return rank_; }  ///< in the group
  int size() const { return static_cast<int>(group_->ranks.size()); }

  /// data = the members' data combined.
  template <reducible_element T>
  void all_reduce(T* data, std::size_t count, reduction by) const {
    by_pieces<T>(collective_kind::all_reduce, count, by, -1,
                 [&](const auto& piece, std::size_t first, std::size_t n) { piece(data + first, n, data + first, n); });
  }

  /// out = the members' `in`, one after another: size() * count elements. `in` may be its own place in `out`.
  template <movable_element T>
  void all_gather(const T* in, T* out, std::size_t count) const {
    meet<T>(collective_kind::all_gather, count, reduction::sum, in, count, out, count * members());
  }

  /// out = this rank's part of the members' `in` combined, which is size() * count elements. `out` may be
  /// that part of `in`.
  template <reducible_element T>
  void reduce_scatter(const T* in, T* out, std::size_t count, reduction by) const {
    meet<T>(collective_kind::reduce_scatter, count, by, in, count * members(), out, count);
  }

  /// Part i of `out` = this rank's part of member i's `in`; each has size() parts of `count` elements.
  template <movable_element T>
  void all_to_all(const T* in, T* out, std::size_t count) const {
    meet<T>(collective_kind::all_to_all, count, reduction::sum, in, count * members(), out, count * members());
  }

  /// data = the root's data; `root` is a rank of the group.
  template <movable_element T>
  void broadcast(T* data, std::size_t count, int root) const {
    detail::check_root(*world_, world_->rank(), root, size());
    pass_on<T>(collective_kind::broadcast, data, data, count, root);
  }

  /// As `thread_communicator::send` and `receive`.
  template <movable_element T>
  void send(const T* data, std::size_t count, collective_kind as = collective_kind::send) const {
    pass_on<T>(as, data, nullptr, count, rank_);
  }
  template <movable_element T>
  void receive(T* data, std::size_t count, collective_kind as = collective_kind::send) const {
    pass_on<T>(as, nullptr, data, count, 1 - rank_);
  }

  /// Returns once all members have called it.
  void barrier() const { world_->exchange(*group_, {}, nullptr, 0, nullptr, 0); }

  /// As `thread_communicator::counted`.
  const traffic& counted() const { return group_->counted; }
  void reset_counted() const { group_->counted = {}; }

 private:
  static constexpr std::size_t most_at_once = std::size_t{1} << 24;  // bytes of a piece

  std::size_t members() const { return group_->ranks.size(); }

  template <class T>
  void exchange(const detail::collective_call& call, std::size_t length, const T* in, std::size_t given, T* out,
                std::size_t taken) const {
    detail::message m;
    m.call = call;
    m.length = length;
    m.arithmetic = static_cast<std::int64_t>(detail::arithmetic_of<T>());
    world_->exchange(*group_, m, in, given * sizeof(T), out, taken * sizeof(T));
  }

  template <class T>
  void meet(collective_kind kind, std::size_t count, reduction by, const T* in, std::size_t given, T* out,
            std::size_t taken) const {
    exchange(detail::call_of<T>(kind, count, by, -1), count, in, given, out, taken);
    group_->counted.count(kind, count * sizeof(T), members());
  }

  template <class T>
  void pass_on(collective_kind kind, const T* from, T* to, std::size_t count, int root) const {
    by_pieces<T>(kind, count, reduction::sum, root, [&](const auto& piece, std::size_t first, std::size_t n) {
      if (rank_ == root) piece(from + first, n, nullptr, 0);
      else piece(nullptr, 0, to + first, n);
    });
  }

  template <class T, class Each>
  void by_pieces(collective_kind kind, std::size_t count, reduction by, int root, const Each& each) const {
    const detail::collective_call call = detail::call_of<T>(kind, count, by, root);
    const std::size_t most = std::max<std::size_t>(1, most_at_once / sizeof(T));
    std::size_t first = 0;
    do {
      const std::size_t n = std::min(most, count - first);
      const auto piece = [&](const T* in, std::size_t given, T* out, std::size_t taken) {
        exchange(call, n, in, given, out, taken);
      };
      each(piece, first, n);
      first += n;
    } while (first < count);
    group_->counted.count(kind, count * sizeof(T), members(), root == rank_);
  }

  launched_world* world_;
  detail::launched_group* group_;
  int rank_;
};

}  // namespace cfp
