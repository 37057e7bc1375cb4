// The choices that plans in stages are made of: those that equal stages take, with most and with fewest micro-batches
// under way, and with less memory.
#pragma once

#include <cfp/plan/stages/pooled_tables.hpp>
#include <cfp/plan/stages/run_costs.hpp>

#include <algorithm>
#include <cstddef>
#include <set>
#include <vector>

namespace cfp::inline v0_1::detail {

class mixed_choices {
 public:
  /// Adds what stages that end before these segments and lie in a pool take in all of the tables, of so many
  /// micro-batches a step.
  void add(const std::vector<pooled_tables*>& within, const placed_pools& on, int pool, const std::vector<int>& ends,
           int micro_batches, const run_costs& costs, std::size_t decisions) {
    std::set<std::vector<int>> kinds;
    for (std::size_t s = 0; s < ends.size(); ++s) {
      const int first = s > 0 ? ends[s - 1] : 0, number = static_cast<int>(s);
      const int behind = static_cast<int>(ends.size()) - 1 - number;
      if (on.pool_of_stage(number) != pool) continue;
      if (!kinds.insert(costs.kinds(first, ends[s])).second && behind != 1) continue;
      const int held = std::min(behind + 1, micro_batches);
      for (pooled_tables* const all : within) {
        stage_tables& t = all->of_stage(number);
        for (const stage_option& o : t.options(first, ends[s], held, held)) {
          stages_.push_back({first, ends[s], std::vector<int>(decisions)});
          t.choose(first, ends[s], o.id, stages_.back().choices);
        }
      }
    }
  }

  /// By the kind of their segment, as costs know it.
  run_costs::choices_taken taken(const run_costs& costs) const {
    run_costs::choices_taken out;
    for (const stage& s : stages_) costs.take(s.first, s.end, s.choices, out);
    return out;
  }

 private:
  struct stage {
    int first = 0, end = 0;
    std::vector<int> choices;  // of all decisions; those of others are not looked at
  };
  std::vector<stage> stages_;
};

}  // namespace cfp::inline v0_1::detail
