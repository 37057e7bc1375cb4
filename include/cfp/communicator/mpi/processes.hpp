// Collectives between ranks that are processes, over MPI: this rank's end of a group of ranks.
#pragma once

#include <cfp/communicator/mpi/process_world.hpp>

#include <limits>

namespace cfp::inline v0_1 {

/// One rank's end of a group of processes: a handle, cheap to copy, valid as long as its world. What is promised is
/// what `thread_communicator` promises, to the bit: reductions combine in the order of the ranks. What others
/// contribute to a reduction is kept meanwhile, which allocates when it is more than ever before.
///
/// Throws communicator_error as `thread_communicator` does; the job can then only report and end.
class process_communicator {
 public:
  process_communicator(process_world& world, int, int group = process_world::whole)
      : world_(&world), group_(&world.group(group)), rank_(world.coordinate(world.rank(), group)) {}

  int rank() const { return rank_; }  ///< in the group
  int size() const { return static_cast<int>(group_->ranks.size()); }

  /// data = the members' data combined.
  template <reducible_element T>
  void all_reduce(T* data, std::size_t count, reduction by) const {
    meet<T>(collective_kind::all_reduce, count, by, -1, [&](MPI_Datatype type, const auto& done) {
      std::vector<int> counts, firsts, mine, packed;  // every member combines a piece
      for (std::size_t i = 0; i < members(); ++i) {
        firsts.push_back(static_cast<int>(count * i / members()));
        counts.push_back(static_cast<int>(count * (i + 1) / members()) - firsts.back());
      }
      const auto own = static_cast<std::size_t>(counts[index()]);
      mine.assign(members(), static_cast<int>(own));
      for (std::size_t i = 0; i < members(); ++i) packed.push_back(static_cast<int>(i * own));
      T* const all = keep<T>(members() * own);
      MPI_Request request = MPI_REQUEST_NULL;
      detail::mpi_check(MPI_Ialltoallv(data, counts.data(), firsts.data(), type, all, mine.data(), packed.data(), type,
                                       group_->comm, &request),
                        "MPI_Ialltoallv");
      done(request);
      combine(by, all, own, data + firsts[index()]);
      detail::mpi_check(
          MPI_Iallgatherv(MPI_IN_PLACE, 0, type, data, counts.data(), firsts.data(), type, group_->comm, &request),
          "MPI_Iallgatherv");
      done(request);
    });
  }

  /// out = the members' `in`, one after another: size() * count elements. `in` may be its own place in `out`.
  template <movable_element T>
  void all_gather(const T* in, T* out, std::size_t count) const {
    meet<T>(collective_kind::all_gather, count, reduction::sum, -1, [&](MPI_Datatype type, const auto& done) {
      const int n = static_cast<int>(count);
      T* const own = out + index() * count;
      if (in != own) std::copy_n(in, count, own);
      MPI_Request request = MPI_REQUEST_NULL;
      detail::mpi_check(MPI_Iallgather(MPI_IN_PLACE, 0, type, out, n, type, group_->comm, &request), "MPI_Iallgather");
      done(request);
    });
  }

  /// out = this rank's part of the members' `in` combined, which is size() * count elements. `out` may be
  /// that part of `in`.
  template <reducible_element T>
  void reduce_scatter(const T* in, T* out, std::size_t count, reduction by) const {
    meet<T>(collective_kind::reduce_scatter, count, by, -1, [&](MPI_Datatype type, const auto& done) {
      T* const all = keep<T>(members() * count);
      exchange(type, in, all, count, done);
      combine(by, all, count, out);
    });
  }

  /// Part i of `out` = this rank's part of member i's `in`; each has size() parts of `count` elements.
  template <movable_element T>
  void all_to_all(const T* in, T* out, std::size_t count) const {
    meet<T>(collective_kind::all_to_all, count, reduction::sum, -1,
            [&](MPI_Datatype type, const auto& done) { exchange(type, in, out, count, done); });
  }

  /// data = the root's data; `root` is a rank of the group.
  template <movable_element T>
  void broadcast(T* data, std::size_t count, int root) const {
    detail::check_root(*world_, world_->rank(), root, size());
    meet<T>(collective_kind::broadcast, count, reduction::sum, root, [&](MPI_Datatype type, const auto& done) {
      MPI_Request request = MPI_REQUEST_NULL;
      detail::mpi_check(MPI_Ibcast(data, static_cast<int>(count), type, root, group_->comm, &request), "MPI_Ibcast");
      done(request);
    });
  }

  /// As `thread_communicator::send` and `receive`.
  template <movable_element T>
  void send(const T* data, std::size_t count, collective_kind as = collective_kind::send) const {
    meet<T>(as, count, reduction::sum, rank_, [&](MPI_Datatype type, const auto& done) {
      MPI_Request request = MPI_REQUEST_NULL;
      detail::mpi_check(MPI_Isend(data, static_cast<int>(count), type, 1 - rank_, data_tag, group_->comm, &request),
                        "MPI_Isend");
      done(request);
    });
  }
  template <movable_element T>
  void receive(T* data, std::size_t count, collective_kind as = collective_kind::send) const {
    const int other = 1 - rank_;
    meet<T>(as, count, reduction::sum, other, [&](MPI_Datatype type, const auto& done) {
      MPI_Request request = MPI_REQUEST_NULL;
      detail::mpi_check(MPI_Irecv(data, static_cast<int>(count), type, other, data_tag, group_->comm, &request),
                        "MPI_Irecv");
      done(request);
    });
  }

  /// Returns once all members have called it.
  void barrier() const { world_->enter(*group_, {}); }

  /// As `thread_communicator::counted`.
  const traffic& counted() const { return group_->counted; }
  void reset_counted() const { group_->counted = {}; }

 private:
  static constexpr int data_tag = 3;  // of sends

  std::size_t members() const { return group_->ranks.size(); }
  std::size_t index() const { return static_cast<std::size_t>(rank_); }

  template <class T>
  T* keep(std::size_t count) const {
    if (group_->kept.size() < count * sizeof(T)) group_->kept.resize(count * sizeof(T));
    return reinterpret_cast<T*>(group_->kept.data());  // operator new aligns for any element
  }

  template <class T, class Done>
  void exchange(MPI_Datatype type, const T* in, T* out, std::size_t count, const Done& done) const {
    MPI_Request request = MPI_REQUEST_NULL;
    detail::mpi_check(
        MPI_Ialltoall(in, static_cast<int>(count), type, out, static_cast<int>(count), type, group_->comm, &request),
        "MPI_Ialltoall");
    done(request);
  }

  template <class T>
  void combine(reduction by, const T* all, std::size_t count, T* out) const {
    detail::fold_blocks<T>(
        by, [&](std::size_t member) { return all + member * count; }, members(), 0, count,
        [&](const T* folded, std::size_t at, std::size_t length) { std::copy_n(folded, length, out + at); });
  }

  template <class T, class Move>
  void meet(collective_kind kind, std::size_t count, reduction by, int root, const Move& move) const {
    const detail::collective_call call = detail::call_of<T>(kind, count, by, root);
    const auto most = static_cast<std::size_t>(std::numeric_limits<int>::max());  // MPI counts with int
    const bool by_pieces =
        kind == collective_kind::all_reduce || kind == collective_kind::broadcast || is_between_two(kind);
    if (const std::size_t limit = by_pieces ? most - members() : most / members(); count > limit) {
      const std::string message =
          call.text() + group_->where + " is more than MPI counts, at most " + std::to_string(limit);
      world_->fail(world_->rank(), message);
      throw communicator_error(message);
    }
    world_->enter(*group_, call);
    if (count > 0) {
      MPI_Datatype type = MPI_DATATYPE_NULL;
      detail::mpi_check(MPI_Type_contiguous(sizeof(T), MPI_BYTE, &type), "MPI_Type_contiguous");
      detail::mpi_check(MPI_Type_commit(&type), "MPI_Type_commit");
      move(type, [&](MPI_Request& request) { world_->finish(*group_, call, request); });
      MPI_Type_free(&type);
    }
    group_->counted.count(kind, count * sizeof(T), members(), root == rank_);
  }

  process_world* world_;
  detail::process_group* group_;
  int rank_;
};

}  // namespace cfp
