// GPUs as devices: that of a rank among others, and one alone.
#pragma once

#include <cfp/backend/cuda/device/gpu.hpp>
#include <cfp/backend/cuda/product/algorithm_choice.hpp>
#include <cfp/backend/nobody.hpp>
#include <cfp/communicator/nccl/nccl_communicator.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace cfp::inline v0_1::cuda {

/// The GPU of a rank, its collectives by NCCL: made by all ranks together. `Gpu` is a basic_gpu.
template <class Gpu>
class basic_rank_gpu : public Gpu {
 public:
  /// What ranks share, and how they are connected.
  struct parts : Gpu::parts {
    nccl_options connected{};
    void set_deadline(std::chrono::nanoseconds limit) { connected.deadline = limit; }
  };
  /// A recorded graph, and what it sends each time it is replayed.
  struct graph {
    std::shared_ptr<captured_graph> made{};
    std::vector<traffic> sends{};
    explicit operator bool() const { return made != nullptr; }
  };

  /// `control`: the context of the rank, as a thread or a process, which must outlive this.
  template <class Context>
  basic_rank_gpu(const parts& shared, Context& control)
      : basic_rank_gpu(shared, std::make_unique<nccl_world>(control, shared.connected)) {
    this->wait_by([this](cudaEvent_t e) {
      if (e == nullptr) world_->synchronise(this->main().stream());
      else world_->synchronise(this->main().stream(), e);
    });
    from_first_ = [&control](std::span<std::byte> x) { control.world.broadcast(x.data(), x.size(), 0); };
  }

  int rank() const { return world_->rank(); }
  nccl_communicator among(unsigned axes, const typename Gpu::queue& q) const {
    return ranks_.along(axes).on(q.stream());
  }
  nccl_communicator pair(int axis, int with, bool sends, const typename Gpu::queue& q) const {
    return ranks_.pair(axis, with, sends).on(q.stream());
  }
  /// All ranks together: they choose as the first does.
  void settle() {
    if (rank() == 0) Gpu::settle();
    std::vector<algorithm_choice> choices = this->library().choices();
    std::size_t count = choices.size();
    from_first_(std::as_writable_bytes(std::span(&count, 1)));
    choices.resize(count);
    from_first_(std::as_writable_bytes(std::span(choices)));
    this->library().choose(choices);
    Gpu::settle();  // what the first does not have
  }
  /// What products are computed by, to be computed by it again: as `rank::choices` says.
  std::map<std::string, long> choices() { return named(this->library().choices(), this->library().name()); }
  void choose(const std::map<std::string, long>& all) {
    this->library().choose(choices_named(all, this->library().name()));
  }
  void fail(const std::string& why) { world_->fail(rank(), why); }
  nccl_context& ranks() { return ranks_; }

  graph record(const std::function<void()>& issue) {
    const std::vector<traffic> before = issued();
    graph out{Gpu::record(issue), issued()};
    world_->hold(out.made);
    for (std::size_t a = 0; a < before.size(); ++a) out.sends[a] -= before[a];
    for (std::size_t a = 0; a < before.size(); ++a) replayed_[a] -= out.sends[a];  // recorded, not run
    return out;
  }
  void replay(const graph& g) {
    world_->check_usable();
    Gpu::replay(g.made);
    for (std::size_t a = 0; a < g.sends.size(); ++a) replayed_[a] += g.sends[a];
  }
  traffic counted(int group) const {
    traffic out = replayed_[static_cast<std::size_t>(group)];
    return out += ranks_.group(group).counted();
  }
  void reset_counted() {
    ranks_.reset_counted();
    replayed_.assign(replayed_.size(), {});
  }

 private:
  basic_rank_gpu(const typename Gpu::parts& shared, std::unique_ptr<nccl_world> world)
      : Gpu(shared), world_(std::move(world)), ranks_(*world_, world_->rank()),
        replayed_(static_cast<std::size_t>(ranks_.groups_and_pairs())) {}
  std::vector<traffic> issued() const {
    std::vector<traffic> out;
    for (int group = 0; group < ranks_.groups_and_pairs(); ++group) out.push_back(ranks_.group(group).counted());
    return out;
  }

  std::function<void(std::span<std::byte>)> from_first_;
  std::unique_ptr<nccl_world> world_;
  nccl_context ranks_;
  std::vector<traffic> replayed_;
};

/// One GPU alone, in the place of a rank of any mesh: all but its collectives can be run, and timed.
template <class Gpu>
class basic_lone_gpu : public Gpu {
 public:
  explicit basic_lone_gpu(const typename Gpu::parts& shared = typename Gpu::parts{}) : Gpu(shared) {}

  /// Stands in for this rank from now on.
  void be(int rank) { rank_ = rank; }
  int rank() const { return rank_; }
  nobody among(unsigned, const typename Gpu::queue&) const { return {}; }
  nobody pair(int, int, bool, const typename Gpu::queue&) const { return {}; }
  void fail(const std::string&) const {}

 private:
  int rank_ = 0;
};

}  // namespace cfp::cuda
