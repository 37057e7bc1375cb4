// What decisions take in a stage of a pipeline: forward, backward, and once a step; and what memory they take whatever
// runs.
#pragma once

#include <cfp/profile/machine/roofline.hpp>
#include <cfp/solve/cost_graph.hpp>

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>
#include <vector>

namespace cfp::inline v0_1 {

/// The same decisions by several figures; milliseconds are of a step of all micro-batches.
struct stage_costs {
  cost_graph whole;                    ///< all that a step takes; memory: with one micro-batch under way
  cost_graph forward, backward, once;  ///< of that; once: what updates take, and what is brought for them
  cost_graph resting;                  ///< bytes of weights, state and sums of gradients, in the place of times
};

class stage_pricing : public roofline {
 public:
  using roofline::roofline;

  stage_costs prices() {
    std::vector<cost_graph> all = collect({});
    count_as_backward(all[of_forward], all[of_backward]);
    return {std::move(all[of_all]), std::move(all[of_forward]), std::move(all[of_backward]), std::move(all[of_step]),
            std::move(all[of_rest])};
  }

 private:
  enum way : std::size_t { of_all, of_forward, of_backward, of_step, of_rest, all_ways };

  std::size_t ways() const override { return all_ways; }

  figures program_times(const decision&, std::size_t, const sharding&, const program& p) override {
    figures ms(all_ways, 0.0);
    for (std::size_t i = 0; i < p.code.size(); ++i) {
      const double all = p.runs(i) * times_(p.code[i], p, g_);
      ms[of_all] += all;
      ms[g_.passes > 1 && p.runs(i) == 1 ? of_step : when(p.code[i].op, p.code[i].again)] += all;
    }
    ms[of_rest] = static_cast<double>(memory_of(p, g_).resting);
    return ms;
  }
  figures step_times(int v, const partition& from, const conversion_step& s) override {
    const program p = conversion_program(g_, mesh_, v, from, s, real_bytes_);
    figures ms(all_ways, 0.0);
    const int maker = g_[v].producer;
    ms[of_all] = times_(p.code[0], p, g_);
    ms[maker >= 0 ? when(maker, false) : g_[v].role == value_role::weight ? of_step : of_forward] = ms[of_all];
    return ms;
  }
  way when(int operation, bool again) const {
    if (again || operation < 0) return of_backward;
    const phase w = g_.at(operation).when;
    return w == phase::forward ? of_forward : w == phase::backward ? of_backward : of_step;
  }

  // What forward does once more is for backward.
  void count_as_backward(cost_graph& forward, cost_graph& backward) const {
    struct changed {
      shared_table was, none, sum;  // what was is held, so that nothing else is found in its place
    };
    std::map<std::pair<const void*, const void*>, changed> known;
    for (std::size_t e = 0; e < d_.edges.size(); ++e) {
      if (d_.edges[e].remade < 0) continue;
      shared_table &there = forward.edges[e].time, &here = backward.edges[e].time;
      const auto [at, fresh] = known.try_emplace({there.id(), here.id()});
      if (fresh) {
        std::vector<double> sums = here.all();
        for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += there[i];
        at->second = {there, std::vector<double>(sums.size(), 0.0), std::move(sums)};
      }
      there = at->second.none, here = at->second.sum;
    }
  }
};

}  // namespace cfp
