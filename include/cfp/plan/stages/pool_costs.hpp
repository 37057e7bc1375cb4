// What decisions take as stages in one pool of devices, and the choices that stages there are made of.
#pragma once

#include <cfp/plan/mesh_plans.hpp>
#include <cfp/plan/narrowed.hpp>
#include <cfp/plan/stages/mixed_choices.hpp>
#include <cfp/plan/stages/priced_stages.hpp>
#include <cfp/plan/stages/run_costs.hpp>
#include <cfp/plan/stages/stage_tables.hpp>
#include <cfp/plan/stages/staged_plan.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace cfp::inline v0_1::detail {

class pool_costs {
 public:
  /// `less`: decisions that may compute again what they keep; asked for once if at all, where that is allowed. All must
  /// outlive this.
  pool_costs(const planned_graph& planned, const stage_segments& segments, const decision_graph& kept,
             std::function<const decision_graph&()> less, const placed_pools& on, int pool, int micro_batches,
             const staged_options& options)
      : planned_(planned), segments_(segments), decisions_(kept), less_(std::move(less)), places_(on), pool_(pool),
        micro_batches_(micro_batches), stage_(on.one_place(pool)), conversions_(stage_, on.inside()), options_(options),
        on_(options.machine.on(stage_.device.memory, conversions_.prices)),
        times_(stage_, on.inside(), on.pools() == 1 ? options.machine.known : nullptr),
        costs_(planned.g, segments_, decisions_, priced_all(decisions_)) {}
  pool_costs(const pool_costs&) = delete;

  const machine_options& options() const { return on_; }
  /// Of all choices, or, once it was asked for, of those that may compute again.
  const run_costs& costs() const { return less_costs_ ? *less_costs_ : costs_; }

  /// `left_out`: bytes of its devices that plans must not use, or, below 0, may use beside what there is.
  stage_tables tables_of_all(std::int64_t left_out) {
    return {costs_, [this] { return less(); }, limits(on_.memory - left_out)};
  }
  stage_tables tables_without_limit() {
    return {costs_, [this] { return less(); }, limits(max_total_memory)};
  }
  /// Of those choices alone that were taken.
  stage_tables tables_of_taken(std::int64_t left_out) {
    return {*taken_, std::function<const run_costs*()>(), limits(on_.memory - left_out)};
  }
  void take_none() { some_ = {}; }
  /// Takes those that such stages take in all of the tables, beside what was taken.
  void take(const std::vector<pooled_tables*>& within, const std::vector<int>& ends) {
    some_.add(within, places_, pool_, ends, micro_batches_, costs_, decisions_.nodes.size());
    taken_.emplace(costs(), some_.taken(costs()));
  }

 private:
  // Of one run within a limit, which programs decide in the end.
  static constexpr double within_share = 0.02, within_gap = 0.01;

  stage_costs priced_all(const decision_graph& d) {
    return priced_stages(planned_, segments_, d, places_, times_, on_.lowered_for, &conversions_.known);
  }
  // Decisions that may compute again what they keep, where that is allowed; their first choices keep all.
  const run_costs* less() {
    if (options_.machine.recompute == recomputing::none) return nullptr;
    if (!less_costs_) {
      const decision_graph& all = less_();
      if (options_.all_choices) return &less_costs_.emplace(planned_.g, segments_, all, priced_all(all));
      const fewer_choices some = however_kept(all, *costs_.left());
      const decision_graph d = narrowed(all, some);
      less_costs_.emplace(planned_.g, segments_, d, priced_all(d), false, some);
    }
    return &*less_costs_;
  }
  stage_tables::limits limits(std::int64_t memory) const {
    stage_tables::limits l{micro_batches_, std::max<std::int64_t>(1, memory), on_.of_solver(),
                           on_.of_solver(within_share)};
    l.within.gap = within_gap;
    return l;
  }

  const planned_graph& planned_;
  const stage_segments& segments_;
  const decision_graph& decisions_;
  const std::function<const decision_graph&()> less_;
  const placed_pools& places_;
  const int pool_, micro_batches_;
  const machine stage_;
  described_conversions conversions_;
  const staged_options& options_;
  const machine_options on_;
  described_times times_;
  const run_costs costs_;
  std::optional<run_costs> less_costs_, taken_;
  mixed_choices some_;
};

}  // namespace cfp::inline v0_1::detail
