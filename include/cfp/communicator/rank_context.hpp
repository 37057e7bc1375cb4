// One rank as the function that runs on it sees it.
#pragma once

#include <cfp/core/placement.hpp>

#include <cstddef>
#include <string>
#include <vector>

namespace cfp::inline v0_1 {

/// What the function of a rank is given.
template <class World, class Communicator>
struct rank_context_of {
  int rank = 0;                     ///< in the world
  int size = 1;                     ///< of the world
  std::vector<int> coordinates;     ///< in the mesh, one per axis
  Communicator world;               ///< all ranks
  std::vector<Communicator> axes;   ///< per mesh axis, the ranks that differ only on it
  std::vector<Communicator> joint;  ///< per set of several axes, those that differ only on these: see `rank_grid`
  std::vector<Communicator> pairs;  ///< with one other rank each, which differs only on one axis, for either way

  rank_context_of(World& shared, int this_rank)
      : rank(this_rank), size(shared.size()), world(shared, this_rank), shared_(&shared) {
    for (int group = 0; group < shared.groups_and_pairs(); ++group) {
      const bool one = group < static_cast<int>(shared.mesh().size());
      if (one) coordinates.push_back(shared.coordinate(rank, group));
      (one ? axes : group < shared.groups() ? joint : pairs).emplace_back(shared, rank, group);
    }
  }

  /// Groups: so many along axes, and so many with the pairs, by number.
  int groups() const { return static_cast<int>(axes.size() + joint.size()); }
  int groups_and_pairs() const { return groups() + static_cast<int>(pairs.size()); }
  const Communicator& group(int number) const {
    auto at = static_cast<std::size_t>(number);
    for (const std::vector<Communicator>* some : {&axes, &joint}) {
      if (at < some->size()) return (*some)[at];
      at -= some->size();
    }
    return pairs[at];
  }
  /// The one along a set of axes, a bit each.
  const Communicator& along(unsigned set) const { return group(shared_->along(set)); }
  /// The one with the rank that is elsewhere on an axis alone: for what is sent to it, or received from it.
  const Communicator& pair(int axis, int with, bool sends) const {
    const int mine = coordinates[static_cast<std::size_t>(axis)];
    return group(sends ? shared_->pair(axis, mine, with) : shared_->pair(axis, with, mine));
  }
  void reset_counted() const {
    for (int g = 0; g < groups_and_pairs(); ++g) group(g).reset_counted();
  }

  /// Whether ranks share the memory of one process.
  static constexpr bool one_process = World::one_process;
  /// Whether this rank is the one that writes what its process keeps of a job: one in each process.
  bool leads() const { return !one_process || rank == 0; }

  /// Of a whole tensor that was zero every rank has written its pieces, no two the same one: makes it whole in every
  /// process.
  template <class T>
  void complete([[maybe_unused]] T* whole, [[maybe_unused]] std::size_t count) const {
    if constexpr (!one_process) world.all_reduce(whole, count, reduction::sum);
  }

  /// This rank ends with an error: no rank waits for it in a collective any more, nor does a stream of its own wait for
  /// others (between processes: as soon as these know of it). A `consequence` only says where the error of another rank
  /// met this one: "stopped in ...".
  void fail(const std::string& what, bool consequence = false) const { shared_->fail(rank, what, consequence); }

  /// Whether some rank is known to have failed. Waits for nothing; to be asked by whoever waits for something else than
  /// a collective.
  bool stopped() const { return shared_->stopped(); }

 private:
  World* shared_;
};

}  // namespace cfp
