// The plans of a model in stages: in micro-batches of so many rows, on one mesh inside of so many places.
#pragma once

#include <cfp/plan/mesh_plans.hpp>
#include <cfp/plan/stages/equal_ends.hpp>
#include <cfp/plan/stages/run_costs.hpp>
#include <cfp/plan/stages/stage_borders.hpp>
#include <cfp/plan/stages/stage_pricing.hpp>
#include <cfp/plan/stages/stage_segments.hpp>
#include <cfp/plan/stages/stage_tables.hpp>
#include <cfp/plan/stages/staged_plan.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace cfp::inline v0_1 {

namespace detail {

// One model in micro-batches of so many rows, on one mesh inside and so many places.
class one_layout {
 public:
  one_layout(const graph_of_rows& model, long rows, int micro_batches, const planned_graph& planned, const machine& m,
             const mesh_shape& inside, int places, const staged_options& options)
      : base_{{inside, places}, rows, micro_batches},
        model_([&model, rows](int passes) { return model(rows, passes); }), machine_(m), planned_(planned),
        segments_(planned.g, segments(planned.g, planned.blocks), planned.again),
        stage_(innermost(m, inside.devices())), conversions_(stage_, inside), of_all_(m, with_stages(inside, places)),
        options_(options), on_(options.machine.on(m.device.memory, conversions_.prices)),
        times_(stage_, inside, options.machine.known), decisions_(decided(planned, inside, options.machine)),
        costs_(planned.g, segments_, decisions_, priced_all(decisions_)),
        borders_(borders_of(planned.g, segments_, m, inside, places, on_.lowered_for.real_bytes)) {}

  /// Milliseconds, by sums of parts, of stages that take about as long each; infinity where they do not fit, where no
  /// plan is below `below`, or where they would be slower than that by more than is unsure with all the memory there
  /// is.
  double of_equal_stages(double below) {
    const auto more = [this] { return less(); };
    stage_tables all(costs_, more, limits(on_.memory)), unlimited(costs_, more, limits(max_total_memory));
    const int places = base_.layout.places;
    hopeless_ = places > all.segments() || all.least_ms(places) >= below ||
                of_equal_stages(unlimited) >= below * (1 + on_.unsure);
    if (hopeless_) return never;
    if (!options_.all_choices) mix(all);
    base_.sums_ms = of_equal_stages(tables(on_.memory), base_.ends, chosen_);  // until more is known
    return base_.sums_ms;
  }
  /// Milliseconds of the fastest plan by sums of parts, if it may be below `below`; infinity where there is none. After
  /// those of equal stages.
  double by_sums(double below) { return hopeless_ || !solve_within(below) ? never : base_.sums_ms; }
  /// That plan by its programs, where these are faster than `below`. Sums of parts are held to less memory until
  /// programs fit.
  std::optional<staged_plan> by_programs(double below) {
    std::int64_t memory = on_.memory;
    for (int n = 0; n < tries; ++n) {
      staged_plan out = base_;
      if (priced(out, chosen_, "1f1b", below)) return out;
      if (out.price.peak <= on_.memory) return std::nullopt;
      memory -= out.price.peak - on_.memory + on_.memory / 1000;
      tables(memory);
      if (!solve_within(below * (1 + on_.unsure))) return std::nullopt;
    }
    return std::nullopt;
  }
  /// Runs of segments of about as long, `chunks` of them for each place, interleaved.
  std::optional<staged_plan> interleaved_in(int chunks, double below) {
    if (base_.micro_batches % base_.layout.places != 0) return std::nullopt;
    std::int64_t memory = on_.memory;
    for (int n = 0; n < tries; ++n) {
      tables(memory / chunks);
      staged_plan out = base_;
      out.layout.chunks = chunks;
      std::vector<stage_option> chosen;
      if (!even(*tables_, base_.layout.places * chunks, out.ends, chosen)) return std::nullopt;
      if (priced(out, chosen, "interleaved", below)) return out;
      if (out.price.peak <= on_.memory) return std::nullopt;
      memory -= out.price.peak - on_.memory + on_.memory / 1000;
    }
    return std::nullopt;
  }

 private:
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }
  static constexpr auto kind = staged_schedule::one_forward_one_backward;
  static constexpr double never = std::numeric_limits<double>::infinity();
  static constexpr int tries = 4;
  static constexpr long most_simulated = 2000;
  // Of one run within a limit, which programs decide in the end.
  static constexpr double within_share = 0.02, within_gap = 0.01;

  stage_costs priced_all(const decision_graph& d) {
    return stage_pricing(planned_.g, base_.layout.inside, d, times_, on_.lowered_for, &conversions_.known).prices();
  }
  // Decisions that may compute again what they keep, where that is allowed; their first choices keep all.
  const run_costs* less() {
    if (options_.machine.recompute == recomputing::none) return nullptr;
    if (!less_costs_) {
      less_.emplace(decided(planned_, base_.layout.inside, options_.machine, {}, true));
      less_costs_.emplace(planned_.g, segments_, *less_, priced_all(*less_));
    }
    return &*less_costs_;
  }
  stage_tables::limits limits(std::int64_t memory) const {
    stage_tables::limits l{base_.micro_batches, memory, on_.of_solver(), on_.of_solver(within_share)};
    l.within.gap = within_gap;
    return l;
  }
  stage_tables& tables(std::int64_t memory) {
    if (!options_.all_choices) return tables_.emplace(*mixed_, std::function<const run_costs*()>(), limits(memory));
    return tables_.emplace(
        costs_, [this] { return less(); }, limits(memory));
  }

  // The choices that others are made of: those of equal stages, with most and with fewest micro-batches under way, and
  // with less memory.
  void mix(stage_tables& all) {
    const std::vector<int> ends = all.equal_ends(base_.layout.places);
    stage_tables lean(
        costs_, [this] { return less(); }, limits(on_.memory / 4 * 3));
    std::vector<std::pair<int, std::vector<int>>> some;  // a stage, and what it takes of all decisions
    std::set<std::vector<int>> kinds;
    for (int s = 0; s < static_cast<int>(ends.size()); ++s) {
      const int first = s > 0 ? ends[at(s - 1)] : 0, end = ends[at(s)], behind = base_.layout.places - 1 - s;
      if (!kinds.insert(costs_.kinds(first, end)).second && behind != 1) continue;
      const int held = std::min(behind + 1, base_.micro_batches);
      for (stage_tables* const t : {&all, &lean})
        for (const stage_option& o : t->options(first, end, held, held)) {
          some.emplace_back(s, std::vector<int>(decisions_.nodes.size()));
          t->choose(first, end, o.id, some.back().second);
        }
    }
    const run_costs& of = less_costs_ ? *less_costs_ : costs_;
    run_costs::choices_taken taken;
    for (const auto& [s, choices] : some) of.take(s > 0 ? ends[at(s - 1)] : 0, ends[at(s)], choices, taken);
    mixed_.emplace(of, taken);
  }
  stage_problem problem(stage_tables& t) const {
    stage_problem p;
    p.layers = t.segments(), p.stages = base_.layout.places, p.micro_batches = base_.micro_batches;
    p.memory = static_cast<double>(t.memory());
    p.options = [&t, stages = p.stages](int first, int end) -> const std::vector<stage_option>& {
      return t.options(first, end, stages);
    };
    p.border = [this](int s) { return borders_[at(s)]; };
    return p;
  }
  double of_equal_stages(stage_tables& of) const {
    std::vector<int> ends;
    std::vector<stage_option> chosen;
    return of_equal_stages(of, ends, chosen);
  }
  double of_equal_stages(stage_tables& of, std::vector<int>& ends, std::vector<stage_option>& chosen) const {
    return even(of, base_.layout.places, ends, chosen) ? time_of(problem(of), kind, ends, chosen) : never;
  }
  // The fastest stages by sums of parts, begun with equal ones.
  bool solve_within(double below) {
    const stage_problem p = problem(*tables_);
    below = std::min(below, of_equal_stages(*tables_) * (1 + 1e-9));
    tables_->look_below(below, p.stages);
    const stage_solution s = best_stages(p, kind, most_simulated);
    if (!s.feasible()) return false;
    base_.ends = s.ends, base_.sums_ms = s.ms, base_.bound_ms = s.bound, chosen_ = s.option;
    return true;
  }
  // Stages of as many layers each, or of about as much time: of those that fit the ones whose longest takes less.
  bool even(stage_tables& t, int stages, std::vector<int>& ends, std::vector<stage_option>& chosen) const {
    double least = never;
    for (const std::vector<int>& some : cuts(t, stages)) {
      std::vector<stage_option> all;
      double longest = 0;
      for (int s = 0; s < stages && longest < least; ++s) {
        const stage_option* const o = fastest(t, s, stages, s > 0 ? some[at(s - 1)] : 0, some[at(s)]);
        longest = o == nullptr ? never : std::max(longest, o->forward + o->backward);
        if (o != nullptr) all.push_back(*o);
      }
      if (longest < least) least = longest, ends = some, chosen = std::move(all);
    }
    return least < never;
  }
  std::vector<std::vector<int>> cuts(const stage_tables& t, int stages) const {
    std::vector<std::vector<int>> out;
    if (stages <= t.segments()) out.push_back(t.equal_ends(stages));
    try {
      out.push_back(equal_ends(segments_.found, stages));
    } catch (const bad_input&) {  // there are fewer layers than stages
    }
    return out;
  }
  // Of a stage of so many, of those options that fit.
  const stage_option* fastest(stage_tables& t, int s, int stages, int first, int end) const {
    const int places = base_.layout.places, behind = places - s % places - 1, chunks = stages / places;
    const int under_way = chunks > 1 ? 2 * behind + (chunks - 1) * places + 1 : behind + 1;  // of all its stages
    const int held = std::min((under_way + chunks - 1) / chunks, base_.micro_batches);
    return t.fastest(chunks > 1 ? t.options(first, end, held, held) : t.options(first, end, stages), held);
  }
  // By its programs; whether it fits and is faster than `below`.
  bool priced(staged_plan& out, const std::vector<stage_option>& chosen, const char* schedule, double below) {
    out.layout.schedule = schedule;
    out.choices.assign(decisions_.nodes.size(), 0);
    for (std::size_t s = 0; s < chosen.size(); ++s) {
      const int first = s > 0 ? out.ends[s - 1] : 0;
      tables_->choose(first, out.ends[s], chosen[s].id, out.choices);
      if (s > 0) out.layout.first.push_back(segments_.first[at(first)]);
      stage_cost c;
      c.forward = chosen[s].forward;
      c.backward_inputs = c.backward_weights = chosen[s].backward / 2;
      if (s + 1 < chosen.size()) c.send_forward = borders_[at(out.ends[s])].forward;
      if (s > 0) c.send_backward = borders_[at(first)].backward;
      out.layout.costs.push_back(c);
    }
    out.plan = shard(planned_.g, less_ ? *less_ : decisions_, out.choices);
    target on = on_.lowered_for;
    on.prices = &of_all_;
    out.price = price_of(model_, out.plan, out.layout, {machine_, options_.machine.known}, on, out.micro_batches);
    return out.price.peak <= on_.memory && out.price.ms < below;
  }

  staged_plan base_;
  bool hopeless_ = false;
  const graph_of_passes model_;
  const machine& machine_;
  const planned_graph& planned_;
  const stage_segments segments_;
  const machine stage_;
  described_conversions conversions_;
  const described_prices of_all_;  // conversions on the mesh with stages
  const staged_options& options_;
  const machine_options on_;
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

}  // namespace detail

}  // namespace cfp
