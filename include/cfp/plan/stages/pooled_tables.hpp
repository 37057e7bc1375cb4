// The tables of all stages: those of the pool that each lies in.
#pragma once

#include <cfp/plan/stages/stage_borders.hpp>
#include <cfp/plan/stages/stage_tables.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace cfp::inline v0_1::detail {

class pooled_tables {
 public:
  /// `of_pool`: in the order of pools, of the same segments, each within the memory of its own devices. `on` must
  /// outlive it.
  pooled_tables(const placed_pools& on, std::vector<stage_tables> of_pool)
      : on_(on), of_pool_(std::move(of_pool)), speed_(of_pool_.size(), 1.0) {
    if (of_pool_.size() < 2) return;
    std::vector<double> least(at(segments()), std::numeric_limits<double>::infinity());
    for (std::size_t p = 0; p < of_pool_.size(); ++p) {
      double slowest =
          std::numeric_limits<double>::infinity();  // how many times as long it takes as the first, at least
      for (int i = 0; i < segments(); ++i) {
        least[at(i)] = std::min(least[at(i)], of_pool_[p].passes_ms(i, i + 1));
        const double first = of_pool_[0].passes_ms(i, i + 1);
        if (first > 0) slowest = std::min(slowest, of_pool_[p].passes_ms(i, i + 1) / first);
      }
      speed_[p] = 1 / slowest;
    }
    for (stage_tables& t : of_pool_) t.take_least_elsewhere(least);
  }

  int segments() const { return of_pool_[0].segments(); }
  int micro_batches() const { return of_pool_[0].micro_batches(); }
  stage_tables& of_stage(int stage) { return of_pool_[at(on_.pool_of_stage(stage))]; }
  const stage_tables& of_stage(int stage) const { return of_pool_[at(on_.pool_of_stage(stage))]; }
  void look_below(double ms, int stages) {
    for (stage_tables& t : of_pool_) t.look_below(ms, stages);
  }
  /// Milliseconds that the passes of a step take at least, on one place.
  double passes_ms() const {
    double out = of_pool_[0].passes_ms();
    for (const stage_tables& t : of_pool_) out = std::min(out, t.passes_ms());
    return out;
  }
  /// Milliseconds that a step of as many stages as places takes at least. On pools of several speeds: all that there is
  /// to do, shared by speed.
  double least_ms() const {
    if (of_pool_.size() == 1) return of_pool_[0].least_ms(on_.places());
    return of_pool_[0].passes_ms() / all_speeds(on_.places());
  }
  /// Of so many stages that take about as long each by themselves, the first segment that is not its.
  std::vector<int> equal_ends(int stages) const {
    std::vector<double> speeds;
    for (int s = 0; s < stages; ++s) speeds.push_back(speed_[at(on_.pool_of_stage(s))]);
    return of_pool_[0].equal_ends(speeds);
  }

  /// What is to be cut into as many stages as places; this and the borders must outlive it.
  stage_problem problem(const stage_borders& borders) {
    stage_problem p;
    p.layers = segments(), p.stages = on_.places(), p.micro_batches = micro_batches();
    p.memory = static_cast<double>(of_pool_[0].memory());
    for (int s = 0; s < p.stages; ++s) p.memories.push_back(static_cast<double>(of_stage(s).memory()));
    p.options = [this, stages = p.stages](int stage, int first, int end) -> const std::vector<stage_option>& {
      return of_stage(stage).options(first, end, stages);
    };
    p.border = [&borders](int stage, int segment) { return borders(stage, segment); };
    return p;
  }

 private:
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }
  double all_speeds(int stages) const {
    double out = 0;
    for (int s = 0; s < stages; ++s) out += speed_[at(on_.pool_of_stage(s))];
    return out;
  }

  const placed_pools& on_;
  std::vector<stage_tables> of_pool_;
  std::vector<double> speed_;  // of each pool, at most so many times that of the first
};

}  // namespace cfp::inline v0_1::detail
