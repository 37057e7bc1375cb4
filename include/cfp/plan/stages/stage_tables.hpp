// What every run of segments takes as a stage of a pipeline, with the choices that are the fastest for as many
// micro-batches as it has under way.
#pragma once

#include <cfp/plan/stages/run_costs.hpp>
#include <cfp/solve/exact/exact.hpp>
#include <cfp/solve/stages.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace cfp::inline v0_1 {

class stage_tables {
 public:
  struct limits {
    int micro_batches = 1;           ///< of a step, whose times the costs are of
    std::int64_t memory = 0;         ///< bytes of a device
    solve_options free{}, within{};  ///< of one run: without a limit, and within one
  };

  /// `all_kept`: costs of decisions that keep all of forward. `less`, asked for once if at all: the same where some may
  /// be computed again, whose choices begin with those; none: nothing may. Both must outlive this.
  stage_tables(const run_costs& all_kept, std::function<const run_costs*()> less, const limits& within)
      : kept_(all_kept), less_(std::move(less)), within_(within), before_(1, 0.0) {
    for (int i = 0; i < segments(); ++i) {
      const std::vector<int> k = kept_.kinds(i, i + 1);
      const auto [at_kind, fresh] = alone_.try_emplace(k, 0.0);
      if (fresh) at_kind->second = solve(kept_.part(i, i + 1).costs, within_.free).bound;
      before_.push_back(before_.back() + at_kind->second);
    }
  }

  int segments() const { return kept_.segments(); }
  std::int64_t memory() const { return within_.memory; }
  /// Milliseconds of a step: a run is no stage of a plan worth looking at that takes more where it is the longest.
  void look_below(double ms) { below_ = ms; }
  /// Milliseconds that segments take at least, of a step.
  double least_ms(int first, int end) const { return before_[at(end)] - before_[at(first)]; }

  /// The fastest choices of segments [first, end) for each number of micro-batches under way up to `most`; different
  /// ones, `id` what `choose` wants. None where nothing fits.
  const std::vector<stage_option>& options(int first, int end, int most) {
    run& r = runs_[kept_.kinds(first, end)];
    const double m = within_.micro_batches, longest = least_ms(first, end);
    if (r.asked >= most || below_ <= (longest * (m - 1) + before_.back()) / m) return r.options;
    for (; r.asked < most; ++r.asked) add(r, first, end, r.asked + 1);
    return r.options;
  }

  /// Of a stage of segments [first, end) that an option is of: of every decision in them.
  void choose(int first, int end, int id, std::vector<int>& choices) const {
    const std::vector<int>& mine = runs_.at(kept_.kinds(first, end)).choices[at(id)];
    std::size_t n = 0;
    for (const std::size_t node : kept_.nodes(first, end)) choices[node] = mine[n++];
  }
  long solved() const { return solved_; }

 private:
  struct run {
    int asked = 0;  // micro-batches under way that were asked for
    bool over = false;
    std::vector<stage_option> options;
    std::vector<std::vector<int>> choices;  // of each option
  };
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }
  bool fits(const stage_option& o, int held) const {
    return o.always + held * o.kept <= static_cast<double>(within_.memory);
  }

  void add(run& to, int first, int end, int held) {
    if (to.over) return;  // fewer fitted not
    if (held == 1) {
      const run_part p = kept_.part(first, end);
      if (p.least_resting() > static_cast<double>(within_.memory)) {
        to.over = true;
        return;
      }
      add(to, p, solve(p.costs, within_.free));
    }
    if (!to.options.empty() && fits(to.options.back(), held)) return;  // nothing that takes more of them is faster
    if (held == 1) to.options.clear(), to.choices.clear();
    const run_costs* const less = less_ ? less_() : nullptr;
    const run_part p = (less != nullptr ? *less : kept_).part(first, end);
    cost_graph costs = p.with(held);
    costs.memory_limit = within_.memory;
    const solution s = solve(costs, within_.within);
    to.over = !s.feasible;
    if (s.feasible) add(to, p, s);
  }
  void add(run& to, const run_part& p, const solution& s) {
    ++solved_;
    if (!s.feasible) return;
    to.options.push_back(p.option(s.choices, within_.micro_batches));
    to.options.back().id = static_cast<int>(to.choices.size());
    to.choices.push_back(s.choices);
  }

  const run_costs& kept_;
  const std::function<const run_costs*()> less_;
  const limits within_;
  double below_ = std::numeric_limits<double>::infinity();
  std::map<std::vector<int>, double> alone_;  // milliseconds of a segment by itself
  std::vector<double> before_;                // of those before each
  std::map<std::vector<int>, run> runs_;
  long solved_ = 0;
};

}  // namespace cfp
