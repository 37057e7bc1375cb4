// GPUs as devices: that of a rank among others, and one alone.
#pragma once

#include <cfp/backend/cuda/device/gpu.cuh>
#include <cfp/backend/nobody.hpp>
#include <cfp/communicator/nccl/nccl_communicator.hpp>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace cfp::inline v0_1::cuda {

/// The GPU of a rank, its collectives by NCCL: made by all ranks together.
template <class T>
class rank_gpu : public gpu<T> {
 public:
  /// A recorded graph, and what it sends each time it is replayed.
  struct graph {
    typename gpu<T>::graph made{};
    std::vector<traffic> sends{};
    explicit operator bool() const { return made != nullptr; }
  };

  /// `control`: the context of the rank, as a thread or a process, which must outlive this.
  template <class Context>
  rank_gpu(const typename gpu<T>::parts& shared, Context& control)
      : rank_gpu(shared, std::make_unique<nccl_world>(control)) {}

  int rank() const { return world_->rank(); }
  nccl_communicator among(int axis, const queue& q) const {
    return ranks_.axes[static_cast<std::size_t>(axis)].on(q.stream());
  }
  void wait() { world_->synchronise(this->main().stream()); }
  void fail(const std::string& why) { world_->fail(rank(), why); }
  nccl_context& ranks() { return ranks_; }

  graph record(const std::function<void()>& issue) {
    const std::vector<traffic> before = issued();
    graph out{gpu<T>::record(issue), issued()};
    for (std::size_t a = 0; a < before.size(); ++a) out.sends[a] -= before[a];
    for (std::size_t a = 0; a < before.size(); ++a) replayed_[a] -= out.sends[a];  // recorded, not run
    return out;
  }
  void replay(const graph& g) {
    gpu<T>::replay(g.made);
    for (std::size_t a = 0; a < g.sends.size(); ++a) replayed_[a] += g.sends[a];
  }
  traffic counted(int axis) const {
    traffic out = replayed_[static_cast<std::size_t>(axis)];
    return out += ranks_.axes[static_cast<std::size_t>(axis)].counted();
  }
  void reset_counted() {
    for (auto& axis : ranks_.axes) axis.reset_counted();
    replayed_.assign(replayed_.size(), {});
  }

 private:
  rank_gpu(const typename gpu<T>::parts& shared, std::unique_ptr<nccl_world> world)
      : gpu<T>(shared), world_(std::move(world)), ranks_(*world_, world_->rank()), replayed_(ranks_.axes.size()) {}
  std::vector<traffic> issued() const {
    std::vector<traffic> out;
    for (const auto& axis : ranks_.axes) out.push_back(axis.counted());
    return out;
  }

  std::unique_ptr<nccl_world> world_;
  nccl_context ranks_;
  std::vector<traffic> replayed_;
};

/// One GPU alone, in the place of a rank of any mesh: all but its collectives can be run, and timed.
template <class T>
class lone_gpu : public gpu<T> {
 public:
  explicit lone_gpu(const typename gpu<T>::parts& shared = typename gpu<T>::parts{}) : gpu<T>(shared) {}

  /// Stands in for this rank from now on.
  void be(int rank) { rank_ = rank; }
  int rank() const { return rank_; }
  nobody among(int, const queue&) const { return {}; }
  void wait() { check(cudaStreamSynchronize(this->main().stream()), "finish what was launched"); }
  void fail(const std::string&) const {}

 private:
  int rank_ = 0;
};

}  // namespace cfp::cuda
