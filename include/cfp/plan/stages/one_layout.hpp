// The plans of a model in stages: in micro-batches of so many rows, on one mesh inside of so many places.
#pragma once

#include <cfp/plan/mesh_plans.hpp>
#include <cfp/plan/narrowed.hpp>
#include <cfp/plan/stages/even_stages.hpp>
#include <cfp/plan/stages/held_memory.hpp>
#include <cfp/plan/stages/mixed_choices.hpp>
#include <cfp/plan/stages/priced_stages.hpp>
#include <cfp/plan/stages/run_costs.hpp>
#include <cfp/plan/stages/stage_borders.hpp>
#include <cfp/plan/stages/stage_segments.hpp>
#include <cfp/plan/stages/stage_tables.hpp>
#include <cfp/plan/stages/staged_plan.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace cfp::inline v0_1::detail {

class one_layout {
 public:
  one_layout(const graph_of_rows& model, long rows, int micro_batches, const planned_graph& planned, const machine& m,
             const mesh_shape& inside, int places, const staged_options& options)
      : base_{{inside, places}, rows, micro_batches},
        model_([&model, rows](int passes) { return model(rows, passes); }), machine_(m), planned_(planned),
        segments_(planned.g, segments(planned.g, planned.blocks), planned.again), even_(segments_.found, micro_batches),
        stage_(innermost(m, inside.devices())), conversions_(stage_, inside), of_all_(m, with_stages(inside, places)),
        options_(options), on_(options.machine.on(m.device.memory, conversions_.prices)),
        times_(stage_, inside, options.machine.known), decisions_(decided(planned, inside, options.machine)),
        costs_(planned.g, segments_, decisions_, priced_all(decisions_)),
        borders_(borders_of(planned.g, segments_, m, inside, places, on_.lowered_for.real_bytes)) {}

  /// Milliseconds, by sums of parts, of stages that take about as long each; infinity where they do not fit, no plan is
  /// below `below`, or they are slower than that by more than is unsure.
  double of_equal_stages(double below) {
    stage_tables all = tables_of_all(on_.memory), unlimited = tables_of_all(max_total_memory);
    const int places = base_.layout.places;
    passes_ms_ = all.passes_ms();
    const double slow = below * (1 + on_.unsure);
    hopeless_ = places > all.segments() || all.least_ms(places) >= below || of_equal_stages(unlimited) >= slow;
    if (hopeless_) return never;
    stage_tables lean = tables_of_all(on_.memory / 4 * 3);
    base_.sums_ms = of_mixed({&lean, &all});  // until more is known
    hopeless_ = base_.sums_ms < never && base_.sums_ms >= slow;
    if (base_.sums_ms < never) return hopeless_ ? never : base_.sums_ms;
    begin_ += on_.memory / 4;  // programs may take less than sums say
    stage_tables loose = tables_of_all(begin_);
    return base_.sums_ms = of_mixed({&lean, &all, &loose});
  }
  /// Milliseconds of a step that its passes take at least, on one place; after those of equal stages.
  double passes_ms() const { return passes_ms_; }
  /// Of the fastest plan by sums of parts, if it may be below `below`, else infinity; after those of equal stages.
  double by_sums(double below) {
    if (hopeless_) return never;
    if (begin_ > on_.memory) {  // uneven stages may fit
      tables(on_.memory);
      if (solve_within(below)) return begin_ = on_.memory, base_.sums_ms;
      tables(begin_);
    }
    return solve_within(below) ? base_.sums_ms : never;
  }
  /// The fastest by its programs, where these are faster than `below`; it fits.
  std::optional<staged_plan> by_programs(double below) {
    return fitting(below, "1f1b",
                   [&](std::int64_t memory, double ms, staged_plan& out, std::vector<stage_option>& chosen) {
                     if (memory != tables_->memory()) tables(memory);
                     if (!solve_within(ms * (1 + on_.unsure))) return false;
                     out = base_, chosen = chosen_;
                     return true;
                   });
  }
  /// Bytes that it lacks by programs of more micro-batches than were looked at, if any: its price is that of these.
  std::int64_t lacks(staged_plan& found) const {
    price(found, false);
    return std::max<std::int64_t>(0, found.price.peak - on_.memory);
  }
  /// Of memory, for what programs of more micro-batches take; from now on.
  void leave_free(std::int64_t bytes) { free_ = bytes; }
  /// About the least that so many stages of each place take, by what programs took in fewer: ranks wait so much less.
  double least_in(int chunks) const {
    const double waits = (base_.layout.places - 1.0) / base_.micro_batches;
    return priced_ms_ / (1 + waits * (1.0 / priced_chunks_ - 1.0 / chunks)) / (1 + on_.unsure / 2);
  }
  /// Stages of about as long, whose backward is split in two, so that ranks wait less.
  std::optional<staged_plan> split_backward(double below) { return in_even_stages("zb_h1", 1, below); }
  /// The same, `chunks` of them for each place, interleaved.
  std::optional<staged_plan> interleaved_in(int chunks, double below) {
    if (base_.micro_batches % base_.layout.places != 0) return std::nullopt;
    return in_even_stages("interleaved", chunks, below);
  }

 private:
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }
  static constexpr auto kind = staged_schedule::one_forward_one_backward;
  static constexpr double never = std::numeric_limits<double>::infinity();
  static constexpr long most_simulated = 2000;
  // Of one run within a limit, which programs decide in the end.
  static constexpr double within_share = 0.02, within_gap = 0.01;

  stage_costs priced_all(const decision_graph& d) {
    return priced_stages(planned_, segments_, d, machine_, base_.layout, times_, on_.lowered_for, &conversions_.known);
  }
  // Decisions that may compute again what they keep, where that is allowed; their first choices keep all.
  const run_costs* less() {
    if (options_.machine.recompute == recomputing::none) return nullptr;
    if (!less_costs_) {
      less_.emplace(decided(planned_, base_.layout.inside, options_.machine, {}, true));
      if (options_.all_choices) return &less_costs_.emplace(planned_.g, segments_, *less_, priced_all(*less_));
      const fewer_choices some = however_kept(*less_, *costs_.left());
      const decision_graph d = narrowed(*less_, some);
      less_costs_.emplace(planned_.g, segments_, d, priced_all(d), false, some);
    }
    return &*less_costs_;
  }
  stage_tables::limits limits(std::int64_t memory) const {
    stage_tables::limits l{base_.micro_batches, memory, on_.of_solver(), on_.of_solver(within_share)};
    l.within.gap = within_gap;
    return l;
  }
  stage_tables tables_of_all(std::int64_t memory) {
    return {costs_, [this] { return less(); }, limits(memory)};
  }
  stage_tables& tables(std::int64_t memory) {
    if (options_.all_choices) return tables_.emplace(tables_of_all(memory));
    return tables_.emplace(*mixed_, std::function<const run_costs*()>(), limits(memory));
  }

  // Milliseconds of equal stages within the memory of the last, of those choices that equal stages take in all of
  // these, which others are made of from here on. They may not join in equal stages of them alone: then of more.
  double of_mixed(const std::vector<stage_tables*>& within) {
    stage_tables& last = *within.back();
    if (options_.all_choices) return of_equal_stages(tables(last.memory()));
    mixed_choices some;
    const auto with_those_of = [&](const std::vector<int>& ends) {
      some.add(within, ends, base_.micro_batches, costs_, decisions_.nodes.size());
      const run_costs& of = less_costs_ ? *less_costs_ : costs_;
      mixed_.emplace(of, some.taken(of));
      return of_equal_stages(tables(last.memory()));
    };
    const double ms = with_those_of(last.equal_ends(base_.layout.places));
    if (ms < never || of_equal_stages(last) == never) return ms;
    return with_those_of(tables_->equal_ends(base_.layout.places));
  }
  double of_equal_stages(stage_tables& of) {
    if (!even_.in(of, base_.layout, base_.ends, chosen_)) return never;
    return time_of(problem_of(of, base_.layout.places, borders_), kind, base_.ends, chosen_);
  }
  // The fastest stages by sums of parts, begun with equal ones.
  bool solve_within(double below) {
    const stage_problem p = problem_of(*tables_, base_.layout.places, borders_);
    below = std::min(below, of_equal_stages(*tables_) * (1 + 1e-9));
    tables_->look_below(below, p.stages);
    const stage_solution s = best_stages(p, kind, most_simulated);
    if (!s.feasible()) return false;
    base_.ends = s.ends, base_.sums_ms = s.ms, base_.bound_ms = s.bound, chosen_ = s.option;
    return true;
  }
  std::optional<staged_plan> in_even_stages(const char* schedule, int chunks, double below) {
    return fitting(below, schedule,
                   [&](std::int64_t memory, double, staged_plan& out, std::vector<stage_option>& chosen) {
                     tables(memory / chunks);
                     out = base_;
                     out.layout.chunks = chunks, out.layout.schedule = schedule;
                     return even_.in(*tables_, out.layout, out.ends, chosen);
                   });
  }
  // The fastest of those whose programs fit.
  template <class At>
  std::optional<staged_plan> fitting(double below, const char* schedule, const At& at_memory) {
    std::optional<staged_plan> best;
    std::map<std::pair<std::vector<int>, std::vector<int>>, long> seen;  // by cut and choices, bytes
    const std::int64_t most = on_.memory - free_;
    held_memory held(most, begin_ - free_);
    while (const std::int64_t memory = held.next()) {
      staged_plan out;
      std::vector<stage_option> chosen;
      if (!at_memory(memory, below, out, chosen)) {
        held.nothing();
        continue;
      }
      choose(out, chosen, schedule);
      const auto [known, fresh] = seen.try_emplace({out.ends, out.choices});
      if (fresh) price(out, true), known->second = out.price.peak;
      const bool fits = known->second <= most;
      if (!fresh && fits) break;
      held.took(known->second);
      if (!fresh) continue;
      if (out.price.ms > below * (fits ? 1 + on_.unsure : 1)) break;
      if (fits) priced_ms_ = out.price.ms, priced_chunks_ = out.layout.chunks;
      if (fits && out.price.ms < below) below = out.price.ms, best = std::move(out);
    }
    return best;
  }
  void choose(staged_plan& out, const std::vector<stage_option>& chosen, const char* schedule) const {
    out.layout.schedule = schedule;
    out.choices.assign(decisions_.nodes.size(), 0);
    for (std::size_t s = 0; s < chosen.size(); ++s) {
      const int first = s > 0 ? out.ends[s - 1] : 0;
      tables_->choose(first, out.ends[s], chosen[s].id, out.choices);
      if (s > 0) out.layout.first.push_back(segments_.first[at(first)]);
    }
    out.layout.costs = costs_of(chosen, out.ends, borders_);
  }
  void price(staged_plan& out, bool roughly) const {
    out.plan = shard(planned_.g, less_ ? *less_ : decisions_, out.choices);
    target on = on_.lowered_for;
    on.prices = &of_all_;
    out.price =
        price_of(model_, out.plan, out.layout, {machine_, options_.machine.known}, on, out.micro_batches, roughly);
  }

  staged_plan base_;
  bool hopeless_ = false;
  double passes_ms_ = 0;
  double priced_ms_ = 0;  // by programs that fit, in so many stages of each place; 0: not known
  int priced_chunks_ = 1;
  const graph_of_passes model_;
  const machine& machine_;
  const planned_graph& planned_;
  const stage_segments segments_;
  const even_stages even_;
  const machine stage_;
  described_conversions conversions_;
  const described_prices of_all_;  // conversions on the mesh with stages
  const staged_options& options_;
  const machine_options on_;
  std::int64_t begin_ = on_.memory;  // that sums are held to at first
  std::int64_t free_ = 0;            // of memory that programs of few micro-batches may take
  described_times times_;
  const decision_graph decisions_;
  const run_costs costs_;
  std::optional<decision_graph> less_;
  std::optional<run_costs> less_costs_;
  const std::vector<border_cost> borders_;
  std::optional<run_costs> mixed_;
  std::optional<stage_tables> tables_;
  std::vector<stage_option> chosen_;  // of the plan by sums
};

}  // namespace cfp::inline v0_1::detail
