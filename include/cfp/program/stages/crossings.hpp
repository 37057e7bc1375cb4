// What passes between the ranks of a pipeline: every tensor that one computes and another reads, and in which order.
//
// A send waits for its receive. So that ranks never wait for one another in a circle, all transfers have one order,
// that of the times at which their tensors are there in a simulation of the schedule, and every rank makes its own in
// it, beside its operators. What a transfer has to wait for is earlier in that simulation, on either rank.
#pragma once

#include <cfp/pipeline/simulate_pipeline.hpp>
#include <cfp/program/stages/stage_operations.hpp>

#include <algorithm>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace cfp::inline v0_1 {

/// A tensor on its way from one place along the stages to another.
struct crossing {
  int value = -1;
  int pass = 0;                  ///< micro-batch; of a weight 0
  int from = 0, to = 0;          ///< ranks of the schedule
  int made = -1;                 ///< slot of `from` that makes it, -1: before the first
  int needed = 0;                ///< the first slot of `to` that reads it
  int reader = -1, operand = 0;  ///< the operation there, and as which operand
  double when = 0;               ///< milliseconds at which it is there
};

/// Of one step, until the updates begin, in their order. `run`: the schedule, simulated.
class stage_crossings {
 public:
  stage_crossings(const graph& g, const stage_operations& stages, const pipeline_schedule& s, pipeline_run run)
      : g_(g), stages_(stages), s_(s), run_(std::move(run)), places_(s), update_of_(g.values.size(), -1) {
    for (int o = 0; o < g.size(); ++o)
      for (int k = 0; g.at(o).when == phase::update && k < g.at(o).results.size(); ++k)
        if (const int x = overwritten(g.at(o), k); x >= 0) update_of_[at(g.at(o).operands[x])] = o;
    for (int r = 0; r < s.count(); ++r)
      for (std::size_t k = 0; k < s.ranks[at(r)].size(); ++k)
        if (s.ranks[at(r)][k].kind != slot::update) find(r, static_cast<int>(k));
    std::stable_sort(all_.begin(), all_.end(), [](const crossing& a, const crossing& b) { return a.when < b.when; });
  }

  const std::vector<crossing>& all() const { return all_; }
  /// The rank whose weights a stage has: of several that run it the one that does so for the first micro-batch.
  int owner(int stage) const { return places_.of(slot::forward, stage, 0).rank; }
  /// All that run it, ascending.
  std::vector<int> ranks_of(int stage) const {
    std::set<int> out;
    for (int m = 0; m < s_.micro_batches; ++m) out.insert(places_.of(slot::forward, stage, m).rank);
    return {out.begin(), out.end()};
  }
  /// The first slot of a rank that has not ended by then.
  int slot_at(int rank, double ms) const {
    const std::vector<slot_times>& mine = run_.slots[at(rank)];
    return static_cast<int>(std::find_if(mine.begin(), mine.end(), [&](const slot_times& t) { return t.end > ms; }) -
                            mine.begin());
  }

 private:
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }

  void find(int rank, int k) {
    const slot& x = s_.ranks[at(rank)][at(k)];
    for (const int o : stages_.in(x.kind, x.stage))
      for (int n = 0; n < g_.at(o).operands.size(); ++n) {
        crossing c;
        c.value = g_.at(o).operands[n], c.pass = x.micro_batch, c.to = rank, c.needed = k, c.reader = o, c.operand = n;
        if (comes_from_elsewhere(c) && seen_.insert({c.value, c.pass, c.to}).second) all_.push_back(c);
      }
  }
  bool comes_from_elsewhere(crossing& c) const {
    const int maker = g_[c.value].producer;
    if (maker >= 0) {
      const int stage = stages_.of(maker);
      const bool halves = !places_.of(slot::backward, stage, c.pass);
      const auto place = places_.of(stages_.slot_of(maker, halves), stage, c.pass);
      c.from = place.rank, c.made = place.at, c.when = run_.slots[at(place.rank)][at(place.at)].end;
    } else {
      const int update = update_of_[at(c.value)];
      if (update < 0 || g_[c.value].role != value_role::weight) return false;  // every rank has its own
      c.from = owner(stages_.of(update)), c.pass = 0, c.needed = 0, c.when = -1;
    }
    return c.from != c.to;
  }

  const graph& g_;
  const stage_operations& stages_;
  const pipeline_schedule& s_;
  const pipeline_run run_;
  const detail::slot_places places_;
  std::vector<int> update_of_;  // per weight and state
  std::set<std::tuple<int, int, int>> seen_;
  std::vector<crossing> all_;
};

}  // namespace cfp
