// Machines of several kinds that the stages of one pipeline lie in, each stage in one of them.
#pragma once

#include <cfp/core/bad_input.hpp>
#include <cfp/profile/machine/send_time.hpp>
#include <cfp/program/stages/stage_mesh.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace cfp::inline v0_1 {

struct machine_pools {
  std::vector<machine> pools;
  interconnect between{};  ///< what joins them, for all ranks of a stage that send to another pool

  machine_pools(machine only) : pools{std::move(only)} {}  // NOLINT(google-explicit-constructor): a machine is one
  machine_pools(std::vector<machine> all, interconnect links) : pools(std::move(all)), between(std::move(links)) {
    if (pools.empty()) throw bad_input("there must be a pool of devices or more");
  }

  int devices() const {
    int n = 0;
    for (const machine& m : pools) n += m.devices();
    return n;
  }
  /// "4 of a100 + 8 of h100"; of one machine its name.
  std::string name() const {
    if (pools.size() == 1) return pools[0].name;
    std::string out;
    for (const machine& m : pools) out += (out.empty() ? "" : " + ") + std::to_string(m.devices()) + " of " + m.name;
    return out;
  }
};

/// The places of a pipeline in pools, along the stages. Those in one pool lie side by side.
class placed_pools {
 public:
  /// `pool_of_place`: the number of each place's pool; none: all are in the first, so many. Throws bad_input where a
  /// pool has no such devices.
  placed_pools(const machine_pools& all, const mesh_shape& inside, int places, std::vector<int> pool_of_place = {})
      : inside_(inside), pool_(std::move(pool_of_place)) {
    if (pool_.empty()) pool_.assign(at(places), 0);
    if (static_cast<int>(pool_.size()) != places)
      throw bad_input("pools are said of " + std::to_string(pool_.size()) + " places, and there are " +
                      std::to_string(places) + ": say it of each");
    for (std::size_t p = 0; p < all.pools.size(); ++p) {
      const auto first = std::find(pool_.begin(), pool_.end(), static_cast<int>(p));
      const auto behind = std::find_if(first, pool_.end(), [&](int of) { return of != static_cast<int>(p); });
      if (std::find(behind, pool_.end(), static_cast<int>(p)) != pool_.end())
        throw bad_input("places in pool " + all.pools[p].name + " do not lie side by side along the stages");
      first_.push_back(static_cast<int>(first - pool_.begin()));
      count_.push_back(static_cast<int>(behind - first));
      add(all, p);
    }
    for (const int p : pool_)
      if (p < 0 || at(p) >= all.pools.size()) throw bad_input("there is no pool " + std::to_string(p));
  }

  int places() const { return static_cast<int>(pool_.size()); }
  int pools() const { return static_cast<int>(own_.size()); }
  int pool(int place) const { return pool_[at(place)]; }
  /// Of a stage, as those of chunks go around the places.
  int pool_of_stage(int stage) const { return pool(stage % places()); }
  /// All of a pool.
  const machine& own(int pool) const { return own_[at(pool)]; }
  /// The devices of one place, and beyond them what joins all places.
  const machine& seen_from(int pool) const { return seen_[at(pool)]; }
  /// The devices of one place alone.
  machine one_place(int pool) const { return innermost(own(pool), inside_.devices()); }
  const mesh_shape& inside() const { return inside_; }
  mesh_shape whole() const { return with_stages(inside_, places()); }

  /// As `send_seconds` on a machine.
  double send_seconds(int from, int to, double bytes) const {
    const int p = pool(from);
    if (p != pool(to)) return cfp::send_seconds(seen_from(p), whole(), 0, 1, bytes);
    return cfp::send_seconds(own(p), with_stages(inside_, std::max(2, count_[at(p)])), from - first_[at(p)],
                             to - first_[at(p)], bytes);
  }
  /// What neighbours send one another, in the pool where stages `stage - 1` and `stage` lie, or between pools.
  double next_seconds(int stage, double bytes) const {
    const int from = (stage - 1) % places(), to = stage % places(), p = pool(from);
    if (p != pool(to)) return send_seconds(from, to, bytes);
    return cfp::send_seconds(own(p), with_stages(inside_, std::max(2, count_[at(p)])), 0, 1, bytes);
  }

 private:
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }

  void add(const machine_pools& all, std::size_t p) {
    const machine& m = all.pools[p];
    own_.push_back(m);
    if (all.pools.size() == 1) {
      seen_.push_back(m);
      return;
    }
    machine here = innermost(m, inside_.devices());
    if (count_[p] > 0 && (here.devices() != inside_.devices() || inside_.devices() * count_[p] > m.devices()))
      throw bad_input(std::to_string(count_[p]) + " places of " + std::to_string(inside_.devices()) +
                      " devices are no part of " + m.name + ", which has " + std::to_string(m.devices()));
    here.levels.push_back(all.between);
    here.levels.back().joins = places();
    seen_.push_back(std::move(here));
  }

  mesh_shape inside_;
  std::vector<int> pool_;           // of each place
  std::vector<int> first_, count_;  // of each pool, its places
  std::vector<machine> own_, seen_;
};

}  // namespace cfp
