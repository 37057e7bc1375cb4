// What every run of segments takes as a stage of a pipeline, with the choices that are the fastest for as many
// micro-batches as it has under way.
#pragma once

#include <cfp/plan/stages/run_costs.hpp>
#include <cfp/solve/exact/exact.hpp>
#include <cfp/solve/stages.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
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
      if (fresh) at_kind->second = solve(kept_.part(i, i + 1).in_passes(), within_.free).bound;
      before_.push_back(before_.back() + at_kind->second);
    }
    elsewhere_ = before_;
  }
  /// Other stages may lie where segments take less: of each segment, the least milliseconds of its passes anywhere.
  void take_least_elsewhere(const std::vector<double>& least) {
    for (int i = 0; i < segments(); ++i) elsewhere_[at(i + 1)] = elsewhere_[at(i)] + least[at(i)];
  }

  int segments() const { return kept_.segments(); }
  std::int64_t memory() const { return within_.memory; }
  /// Only plans of so many stages that take less milliseconds for a step are worth looking at, under 1F1B.
  void look_below(double ms, int stages) { below_ = ms, stages_ = stages; }
  /// Milliseconds that the passes of a step take at least, all segments by themselves, or some.
  double passes_ms() const { return before_.back(); }
  double passes_ms(int first, int end) const { return before_[at(end)] - before_[at(first)]; }
  /// Milliseconds that a step of so many stages takes at least. What each of them implies (as in `worth_it`), averaged
  /// over them, is least where those behind and those before weigh 1 to 2.
  double least_ms(int stages) const {
    const double m = within_.micro_batches, behind = m > stages ? 2.0 / 3 * (stages - 1) / m : 0;
    return before_.back() / stages * (1 + behind);
  }

  /// Of stages of such speeds that take about as long each by themselves, the first segment that is not its. There must
  /// be as many segments.
  std::vector<int> equal_ends(const std::vector<double>& speeds) const {
    std::vector<int> out;
    const int stages = static_cast<int>(speeds.size());
    const double all = std::accumulate(speeds.begin(), speeds.end(), 0.0);
    double share = 0;
    for (int s = 1, end = 0; s < stages; ++s) {
      share += speeds[at(s - 1)];
      const double wanted = before_.back() * share / all;
      const int most = segments() - (stages - s);
      for (++end; end < most && std::fabs(before_[at(end + 1)] - wanted) <= std::fabs(before_[at(end)] - wanted);)
        ++end;
      out.push_back(end);
    }
    out.push_back(segments());
    return out;
  }

  /// The fastest choices of segments [first, end) for every number of micro-batches under way from `low` to `high`;
  /// where more of them make it slower by no more than `gap` says they are not looked at apart. `id` is what `choose`
  /// wants; none where nothing fits.
  const std::vector<stage_option>& options(int first, int end, int low, int high) {
    std::vector<int> key = kept_.kinds(first, end);
    key.insert(key.end(), {low, high});
    run& r = runs_[std::move(key)];
    if (r.asked || !worth_it(first, end)) return r.options;
    r.asked = true;
    fill(r, first, end, low, high);
    return r.options;
  }
  /// The same of one of `stages`: the first has as many under way as there are stages, the last one.
  const std::vector<stage_option>& options(int first, int end, int stages) {
    const int most = std::min(stages, within_.micro_batches);
    if (first == 0) return options(first, end, most, most);
    return options(first, end, 1, end == segments() ? 1 : std::max(1, std::min(stages - 1, most)));
  }

  /// Of some options the fastest that fits with so many micro-batches under way; nullptr: none.
  const stage_option* fastest(const std::vector<stage_option>& some, int held) const {
    const stage_option* best = nullptr;
    for (const stage_option& o : some)
      if (fits(o, held) && (best == nullptr || o.forward + o.backward < best->forward + best->backward)) best = &o;
    return best;
  }

  /// Of a stage of segments [first, end) that an option is of: of every decision in them.
  void choose(int first, int end, int id, std::vector<int>& choices) const {
    std::size_t n = 0;
    for (const std::size_t node : kept_.nodes(first, end)) choices[node] = choices_[at(id)][n++];
  }
  long solved() const { return solved_; }
  int micro_batches() const { return within_.micro_batches; }

 private:
  struct run {
    bool asked = false;
    std::vector<stage_option> options;
  };
  static constexpr double never = std::numeric_limits<double>::infinity();
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }
  // Milliseconds that passes of segments take at least, of a step, wherever their stage lies.
  double least_ms(int first, int end) const { return elsewhere_[at(end)] - elsewhere_[at(first)]; }
  // Whether it may be a stage of a plan that is worth looking at. A stage begins when those before it have had the
  // first micro-batch and ends before they do. With w under way it waits for those behind it before its first backward
  // and its last one; they alternate with forward in between, unless all are under way at once.
  bool worth_it(int first, int end) const {
    if (stages_ == 0) return true;
    const double m = within_.micro_batches, t = passes_ms(first, end), before = least_ms(0, first),
                 behind = least_ms(end, segments());
    if (before / m + t >= below_) return false;
    for (int s = 0; s < stages_; ++s) {
      const int after = stages_ - 1 - s;
      if ((s == 0) != (first == 0) || (after == 0) != (end == segments())) continue;
      if (before > s * below_ || behind > after * below_) continue;
      const double w = std::min<double>(after + 1, m);
      if (before + (w < m ? (m - w + 1) * t + 2 * behind : (m + 1) / 2 * t + behind) < m * below_) return true;
    }
    return false;
  }
  bool fits(const stage_option& o, int held) const {
    return o.always + held * o.kept <= static_cast<double>(within_.memory);
  }
  // Of `low` to `high` micro-batches under way.
  void fill(run& to, int first, int end, int low, int high) {
    const run_part all_kept = kept_.part(first, end);
    if (all_kept.least_resting() > static_cast<double>(within_.memory)) return;
    add(to, all_kept, solve(all_kept.costs, within_.free));
    if (!to.options.empty() && fits(to.options.back(), high)) return;
    const run_costs* const other = less_ ? less_() : nullptr;
    const run_part less = (other != nullptr ? *other : kept_).part(first, end);
    const double most = within(to, less, high);
    if (low < high) between(to, less, low, high, within(to, less, low), most);
  }
  void between(run& to, const run_part& p, int low, int high, double ms_low, double ms_high) {
    if (high - low < 2 || ms_low == never || ms_high <= ms_low * (1 + within_.within.gap)) return;
    const int middle = (low + high) / 2;
    const double ms = within(to, p, middle);
    between(to, p, low, middle, ms_low, ms), between(to, p, middle, high, ms, ms_high);
  }
  // Milliseconds of the fastest that fits.
  double within(run& to, const run_part& p, int held) {
    if (!to.options.empty() && fits(to.options.front(), held)) return ms_of(to.options.front());  // nothing is faster
    cost_graph costs = p.with(held);
    costs.memory_limit = within_.memory;
    const solution s = solve(costs, within_.within);
    if (!s.feasible) return never;
    add(to, p, s);
    return ms_of(to.options.back());
  }
  double ms_of(const stage_option& o) const { return within_.micro_batches * (o.forward + o.backward) + o.update; }
  void add(run& to, const run_part& p, const solution& s) {
    ++solved_;
    if (!s.feasible) return;
    to.options.push_back(p.option(s.choices, within_.micro_batches));
    to.options.back().id = static_cast<int>(choices_.size());
    choices_.push_back(p.of_decisions(s.choices));
  }

  const run_costs& kept_;
  const std::function<const run_costs*()> less_;
  const limits within_;
  double below_ = std::numeric_limits<double>::infinity();  // milliseconds of a step
  int stages_ = 0;                                          // any
  std::map<std::vector<int>, double> alone_;                // milliseconds of a segment's passes by itself
  std::vector<double> before_, elsewhere_;                  // of those before each, here and where that is least
  std::map<std::vector<int>, run> runs_;
  std::vector<std::vector<int>> choices_;  // of options
  long solved_ = 0;
};

}  // namespace cfp
