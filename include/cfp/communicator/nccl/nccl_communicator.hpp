// Collectives between GPUs, over NCCL: one rank's end of a group of ranks.
#pragma once

#include <cfp/communicator/nccl/nccl_type.hpp>
#include <cfp/communicator/nccl/nccl_world.hpp>

namespace cfp::inline v0_1 {

/// One rank's end of a group of GPUs: a handle, cheap to copy, valid as long as its world. Its calls are those of
/// `thread_communicator`, on memory of the GPU; each returns when it is issued to the stream, and `wait` when it is
/// done. So an error of a collective may be met in a later call. Sums are not combined in the order of the ranks, and a
/// NaN of one rank may be lost in `max` and `min`. Calls that differ between the members are not told apart: they end
/// at the deadline.
///
/// While the stream is captured into a graph, calls become part of the graph. The first call of a group connects its
/// members, so it is better made before.
///
/// Throws communicator_error if a rank of the world has failed, or if NCCL has; all communicators of this rank are then
/// aborted, the contents of the buffers are undefined, and the job can only report and end.
class nccl_communicator {
 public:
  nccl_communicator(nccl_world& world, int, int group = nccl_world::whole)
      : world_(&world), group_(&world.group(group)), rank_(world.coordinate(world.rank(), group)),
        stream_(world.stream()) {}

  int rank() const { return rank_; }  ///< in the group
  int size() const { return static_cast<int>(group_->ranks.size()); }
  cudaStream_t stream() const { return stream_; }

  /// The same group, its calls on another stream.
  nccl_communicator on(cudaStream_t stream) const {
    nccl_communicator other = *this;
    other.stream_ = stream;
    return other;
  }

  /// data = the members' data combined.
  template <nccl_number T>
  void all_reduce(T* data, std::size_t count, reduction by) const {
    issue<T>(collective_kind::all_reduce, count, by, -1, [&](ncclComm_t comm) {
      return ncclAllReduce(data, data, count, nccl_type<T>, nccl_reduction(by), comm, stream_);
    });
  }

  /// out = the members' `in`, one after another: size() * count elements. `in` may be its own place in `out`.
  template <movable_element T>
  void all_gather(const T* in, T* out, std::size_t count) const {
    issue<T>(collective_kind::all_gather, count, reduction::sum, -1,
             [&](ncclComm_t comm) { return ncclAllGather(in, out, count * sizeof(T), ncclInt8, comm, stream_); });
  }

  /// out = this rank's part of the members' `in` combined, which is size() * count elements. `out` may be
  /// that part of `in`.
  template <nccl_number T>
  void reduce_scatter(const T* in, T* out, std::size_t count, reduction by) const {
    issue<T>(collective_kind::reduce_scatter, count, by, -1, [&](ncclComm_t comm) {
      return ncclReduceScatter(in, out, count, nccl_type<T>, nccl_reduction(by), comm, stream_);
    });
  }

  /// Part i of `out` = this rank's part of member i's `in`; each has size() parts of `count` elements.
  template <movable_element T>
  void all_to_all(const T* in, T* out, std::size_t count) const {
    issue<T>(collective_kind::all_to_all, count, reduction::sum, -1, [&](ncclComm_t comm) {
      ncclResult_t first = ncclGroupStart();
      const auto also = [&](ncclResult_t next) {
        if (first == ncclSuccess) first = next;
      };
      for (int i = 0; i < size(); ++i) {
        const std::size_t part = static_cast<std::size_t>(i) * count;
        also(ncclSend(in + part, count * sizeof(T), ncclInt8, i, comm, stream_));
        also(ncclRecv(out + part, count * sizeof(T), ncclInt8, i, comm, stream_));
      }
      also(ncclGroupEnd());
      return first;
    });
  }

  /// data = the root's data; `root` is a rank of the group.
  template <movable_element T>
  void broadcast(T* data, std::size_t count, int root) const {
    detail::check_root(*world_, world_->rank(), root, size());
    issue<T>(collective_kind::broadcast, count, reduction::sum, root, [&](ncclComm_t comm) {
      return ncclBroadcast(data, data, count * sizeof(T), ncclInt8, root, comm, stream_);
    });
  }

  /// As `thread_communicator::send` and `receive`. A pair has no other calls.
  template <movable_element T>
  void send(const T* data, std::size_t count, collective_kind as = collective_kind::send) const {
    issue<T>(as, count, reduction::sum, rank_,
             [&](ncclComm_t comm) { return ncclSend(data, count * sizeof(T), ncclInt8, other(), comm, stream_); });
  }
  template <movable_element T>
  void receive(T* data, std::size_t count, collective_kind as = collective_kind::send) const {
    issue<T>(as, count, reduction::sum, 1 - rank_,
             [&](ncclComm_t comm) { return ncclRecv(data, count * sizeof(T), ncclInt8, other(), comm, stream_); });
  }

  /// Returns once all members have called it, and the stream has come to it. In a graph only the members' GPUs meet.
  void barrier() const {
    world_->issue(*group_, {}, stream_, [&](ncclComm_t comm) {
      return ncclAllReduce(world_->token(), world_->token(), 1, ncclInt32, ncclMax, comm, stream_);
    });
    if (!capturing(stream_)) wait();
  }

  /// Returns once the stream has done what was issued to it, as `nccl_world::synchronise`.
  void wait() const { world_->synchronise(stream_); }

  /// As `thread_communicator::counted`, but of calls issued: those of a graph once, when it is captured.
  const traffic& counted() const { return group_->counted; }
  void reset_counted() const { group_->counted = {}; }

 private:
  // Of a pair, whose communicator is that of all ranks.
  int other() const { return group_->ranks[static_cast<std::size_t>(1 - rank_)]; }

  template <class T, class Issue>
  void issue(collective_kind kind, std::size_t count, reduction by, int root, const Issue& call) const {
    world_->issue(*group_, detail::call_of<T>(kind, count, by, root), stream_, call);
    group_->counted.count(kind, count * sizeof(T), group_->ranks.size(), root == rank_);
  }

  nccl_world* world_;
  detail::nccl_group* group_;
  int rank_;
  cudaStream_t stream_;
};

/// What the function of a rank with a GPU makes of its context: `nccl_world world(rank); nccl_context gpu(world,
/// rank.rank);`.
using nccl_context = rank_context_of<nccl_world, nccl_communicator>;

}  // namespace cfp
