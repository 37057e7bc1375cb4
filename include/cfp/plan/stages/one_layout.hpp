// The plans of a model in stages: in micro-batches of so many rows, on one mesh inside of so many places.
#pragma once

#include <cfp/plan/mesh_plans.hpp>
#include <cfp/plan/stages/even_stages.hpp>
#include <cfp/plan/stages/held_memory.hpp>
#include <cfp/plan/stages/pool_costs.hpp>
#include <cfp/plan/stages/stage_borders.hpp>
#include <cfp/plan/stages/stage_places.hpp>
#include <cfp/plan/stages/stage_segments.hpp>
#include <cfp/plan/stages/staged_plan.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace cfp::inline v0_1::detail {

class one_layout {
 public:
  one_layout(const graph_of_rows& model, long rows, int micro_batches, const planned_graph& planned,
             const machine_pools& m, const stage_places& on, const staged_options& options)
      : base_{{on.inside, on.count}, rows, micro_batches},
        model_([&model, rows](int passes) { return model(rows, passes); }), machine_(m), planned_(planned),
        segments_(planned.g, segments(planned.g, planned.blocks), planned.again), even_(segments_.found, micro_batches),
        places_(m, on.inside, on.count, on.pools), of_all_(places_.seen_from(places_.pool(0)), places_.whole()),
        options_(options), decisions_(decided(planned, on.inside, options.machine)), pools_(all_pools(micro_batches)),
        on_(pools_.front()->options()), borders_(planned.g, segments_, places_, on_.lowered_for.real_bytes) {
    base_.layout.pools = on.pools;
  }

  /// Milliseconds, by sums of parts, of stages that take about as long each; infinity where they do not fit, no plan is
  /// below `below`, or they are slower than that by more than is unsure.
  double of_equal_stages(double below) {
    pooled_tables all = tables_of_all(on_.memory), unlimited = of_pools(&pool_costs::tables_without_limit);
    const int places = base_.layout.places;
    passes_ms_ = all.passes_ms();
    const double slow = below * (1 + on_.unsure);
    hopeless_ = places > all.segments() || all.least_ms() >= below || of_equal_stages(unlimited) >= slow;
    if (hopeless_) return never;
    pooled_tables lean = tables_of_all(on_.memory / 4 * 3);
    base_.sums_ms = of_mixed({&lean, &all}, on_.memory);  // until more is known
    hopeless_ = base_.sums_ms < never && base_.sums_ms >= slow;
    if (base_.sums_ms < never) return hopeless_ ? never : base_.sums_ms;
    begin_ += on_.memory / 4;  // programs may take less than sums say
    pooled_tables loose = tables_of_all(begin_);
    return base_.sums_ms = of_mixed({&lean, &all, &loose}, begin_);
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
                     if (memory != held_) tables(memory);
                     if (!solve_within(ms * (1 + on_.unsure))) return false;
                     out = base_, chosen = chosen_;
                     return true;
                   });
  }
  /// Bytes that it lacks by programs of more micro-batches than were looked at, if any: its price is that of these.
  std::int64_t lacks(staged_plan& found) const {
    price(found, false);
    return std::max<std::int64_t>(0, bytes_over(found.price, places_, options_.machine.memory));
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

  std::vector<std::unique_ptr<pool_costs>> all_pools(int micro_batches) {
    const auto less = [this]() -> const decision_graph& {
      if (!less_) less_.emplace(decided(planned_, base_.layout.inside, options_.machine, {}, true));
      return *less_;
    };
    std::vector<std::unique_ptr<pool_costs>> out;
    for (int p = 0; p < places_.pools(); ++p)
      out.push_back(
          std::make_unique<pool_costs>(planned_, segments_, decisions_, less, places_, p, micro_batches, options_));
    return out;
  }
  template <class... T>
  pooled_tables of_pools(stage_tables (pool_costs::*made)(T...), T... of) {
    std::vector<stage_tables> out;
    for (const std::unique_ptr<pool_costs>& p : pools_) out.push_back((*p.*made)(of...));
    return {places_, std::move(out)};
  }
  // Of so many bytes of a device of the first pool; other pools have so much more or less.
  pooled_tables tables_of_all(std::int64_t memory) { return of_pools(&pool_costs::tables_of_all, on_.memory - memory); }
  pooled_tables& tables(std::int64_t memory) {
    held_ = memory;
    if (options_.all_choices) return tables_.emplace(tables_of_all(memory));
    return tables_.emplace(of_pools(&pool_costs::tables_of_taken, on_.memory - memory));
  }

  // Milliseconds of equal stages within the memory of the last, of those choices that equal stages take in all of
  // these, which others are made of from here on. They may not join in equal stages of them alone: then of more.
  double of_mixed(const std::vector<pooled_tables*>& within, std::int64_t memory) {
    pooled_tables& last = *within.back();
    if (options_.all_choices) return of_equal_stages(tables(memory));
    for (const std::unique_ptr<pool_costs>& p : pools_) p->take_none();
    const auto with_those_of = [&](const std::vector<int>& ends) {
      for (const std::unique_ptr<pool_costs>& p : pools_) p->take(within, ends);
      return of_equal_stages(tables(memory));
    };
    const double ms = with_those_of(last.equal_ends(base_.layout.places));
    if (ms < never || of_equal_stages(last) == never) return ms;
    return with_those_of(tables_->equal_ends(base_.layout.places));
  }
  double of_equal_stages(pooled_tables& of) {
    if (!even_.in(of, base_.layout, base_.ends, chosen_)) return never;
    return time_of(of.problem(borders_), kind, base_.ends, chosen_);
  }
  // The fastest stages by sums of parts, begun with equal ones.
  bool solve_within(double below) {
    const stage_problem p = tables_->problem(borders_);
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
      if (fresh) price(out, true), known->second = on_.memory + bytes_over(out.price, places_, options_.machine.memory);
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
      tables_->of_stage(static_cast<int>(s)).choose(first, out.ends[s], chosen[s].id, out.choices);
      if (s > 0) out.layout.first.push_back(segments_.first[at(first)]);
    }
    out.layout.costs = borders_.costs_of(chosen, out.ends);
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
  const machine_pools& machine_;
  const planned_graph& planned_;
  const stage_segments segments_;
  const even_stages even_;
  const placed_pools places_;
  const described_prices of_all_;  // conversions on the mesh with stages
  const staged_options& options_;
  const decision_graph decisions_;
  std::optional<decision_graph> less_;
  const std::vector<std::unique_ptr<pool_costs>> pools_;
  const machine_options& on_;        // of the first pool
  std::int64_t begin_ = on_.memory;  // that sums are held to at first
  std::int64_t free_ = 0;            // of memory that programs of few micro-batches may take
  const stage_borders borders_;
  std::optional<pooled_tables> tables_;
  std::int64_t held_ = 0;             // what they are held to
  std::vector<stage_option> chosen_;  // of the plan by sums
};

}  // namespace cfp::inline v0_1::detail
