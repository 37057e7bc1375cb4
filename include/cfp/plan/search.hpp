// The search: solve, run the best plan's segments whole, keep how they differ from the sum of their parts, solve again.
#pragma once

#include <cfp/plan/memory_limit.hpp>
#include <cfp/plan/named.hpp>
#include <cfp/plan/narrowed.hpp>
#include <cfp/plan/nothing_fits.hpp>
#include <cfp/plan/segment_times.hpp>
#include <cfp/profile/measure/profiler.hpp>
#include <cfp/solve/correction.hpp>
#include <cfp/solve/lazy.hpp>

#include <chrono>
#include <functional>
#include <optional>

namespace cfp::inline v0_1 {

struct search_options {
  std::optional<long> memory_limit{};  ///< bytes a rank may use
  int rounds = 6;                      ///< most plans whose segments are run whole
};

class plan_search {
 public:
  plan_search(const graph& g, const mesh_shape& mesh, const decision_graph& d, const segment_times& segments,
              profiler& measure_with)
      : g_(g), mesh_(mesh), d_(d), segments_(segments), profiler_(measure_with), costs_(profiler_.costs_so_far()) {
    for (std::size_t i = 0; i < segments_.size(); ++i) corrections_.emplace_back(segments_.decisions(i), costs());
  }

  /// How much slower, relatively, the found plan may be than the best: of a lazy profiler less is asked then.
  double tolerance = 0;
  double solve_seconds = 0;
  int rounds = 0;  ///< plans tried
  double gap = 0;  ///< how much faster, relatively, the sums of parts still think an untried plan might be

  /// Bytes that a program takes beside what it plans, if it is known where: all processes say the same.
  std::function<long(const program&)> beside_bytes{};

  /// Sums of parts.
  const cost_graph& costs() const { return costs_.least; }

  /// The same, corrected by the segments that were run whole: what plans are found by.
  cost_graph corrected() const { return corrected(costs()); }

  /// A plan to compare with: the best with some decisions fixed (choice >= 0), if there is one, its segments run whole.
  /// With a tolerance its parts are not measured for that, and what is not fixed is chosen as they are expected to be.
  void add(const std::string& label, const std::vector<int>& choices) { asked_for_.emplace_back(label, choices); }

  /// A plan that was found before: where it keeps the limit, what is found is no slower.
  void remember(std::vector<int> choices) { remembered_.push_back(std::move(choices)); }

  /// The fastest plan within the limit, called "found", and after it those added. Throws `nothing_fits`.
  std::vector<plan> run(const search_options& options, const std::function<void(const std::string& what)>& tell = {}) {
    std::vector<plan> tried;
    // The sum + largest bound of memory is a model: what it is held to follows what programs need.
    std::optional<limits_of_sums> limits;
    if (options.memory_limit) limits.emplace(*options.memory_limit, options.memory_limit);
    double least = -std::numeric_limits<double>::infinity();
    long leanest = 0;
    if (tolerance == 0) add_named(tell);
    std::optional<std::int64_t> least_of_sums;
    bool settled = false, more = true;
    for (int attempt = 0; more && rounds < options.rounds && attempt < options.rounds + 20; ++attempt) {
      const auto limited = [&](cost_graph now) {
        if (limits) now.memory_limit = limits->now();
        return now;
      };
      const solution s = best(limited, fastest(tried, options));
      if (!s.feasible) {
        least_of_sums = s.least_memory;
        more = limits && limits->none(s.least_memory);
        continue;
      }
      least = s.bound;
      if (s.choices.empty() && !tried.empty()) break;  // what was tried is near enough
      plan p = realised("found", s.choices);
      const std::int64_t peak = predicted_peak(p);
      if (excess(p, options) > 0) {
        lean(leanest, peak);
        more = limits->tried(s, peak);
        continue;
      }
      const bool known = knows(p);
      if (settled && p.choices == tried.back().choices) break;  // more memory changes nothing
      if (known) more = limits && limits->tried(s, peak);
      else ++rounds;
      settled = known;
      if (tell) tell("running the segments of found plan " + std::to_string(rounds));
      price(p);
      tried.push_back(std::move(p));
    }
    if (tolerance > 0) add_named(tell);
    for (const plan& p : named_) lean(leanest, predicted_peak(p));
    if (leanest == 0 && least_of_sums) leanest = static_cast<long>(*least_of_sums);
    add_remembered(tried, options);
    confirm(tried, tell);
    for (const plan& p : named_)
      if (excess(p, options) <= 0) tried.push_back(p);
    if (tried.empty()) throw nothing_fits(*options.memory_limit, leanest);
    plan best = *std::min_element(tried.begin(), tried.end(),
                                  [](const plan& a, const plan& b) { return a.predicted_ms < b.predicted_ms; });
    best.name = "found";
    gap = settled ? 0 : std::max(0.0, 1 - least / best.predicted_ms);
    named_.insert(named_.begin(), std::move(best));
    return std::exchange(named_, {});
  }

 private:
  void add_named(const std::function<void(const std::string&)>& tell) {
    for (const auto& asked : std::exchange(asked_for_, {})) {
      const auto& [label, choices] = asked;
      if (tell) tell("running the segments of plan " + label);
      const auto rest = [&](cost_graph now) { return fixed(std::move(now), asked.second); };
      const solution s = tolerance == 0 ? best(rest) : solve(rest(corrected(costs_.expected)));
      if (!s.feasible) continue;
      named_.push_back(realised(label, s.choices));
      price(named_.back());
    }
  }

  void add_remembered(std::vector<plan>& tried, const search_options& options) {
    for (const std::vector<int>& choices : remembered_) {
      if (std::any_of(tried.begin(), tried.end(), [&](const plan& p) { return p.choices == choices; })) continue;
      plan p = realised("found", choices);
      if (excess(p, options) > 0) continue;
      price(p);
      tried.push_back(std::move(p));
    }
  }

  cost_graph corrected(cost_graph sums) const {
    // What all plans of a segment have in common (a cache, a disturbance) is no merit of the ones that were run.
    for (const correction& c : corrections_) c.write(sums, c.common());
    return sums;
  }

  plan realised(const std::string& label, const std::vector<int>& choices) const {
    plan out = realise(label, g_, mesh_, d_, first(choices), profiler_.lowered_for());
    if (beside_bytes) out.beside_bytes = beside_bytes(out.code);
    return out;
  }

  bool knows(const plan& p) const {
    bool all = true;
    for (const correction& c : corrections_) all = all && c.knows(p.choices);
    return all;
  }

  // Of what was tried: what a lazy search need not beat by more than the tolerance.
  double fastest(const std::vector<plan>& tried, const search_options& options) const {
    double ms = std::numeric_limits<double>::infinity();
    for (const plan& p : tried)
      if (tolerance > 0 && excess(p, options) <= 0) ms = std::min(ms, p.predicted_ms);
    return ms;
  }

  static long excess(const plan& p, const search_options& options) {
    return options.memory_limit ? predicted_peak(p) - *options.memory_limit : 0;
  }

  static void lean(long& leanest, long bytes) {
    if (leanest == 0 || bytes < leanest) leanest = bytes;
  }

  // Runs the segments of all plans again, in turn: one moment's disturbance must not decide between them.
  void confirm(std::vector<plan>& tried, const std::function<void(const std::string&)>& tell) {
    if (tried.size() + named_.size() < 2) return;  // nothing to decide
    for (std::vector<plan>* plans : {&tried, &named_})
      for (plan& p : *plans) {
        if (tell) tell("running the segments of plan " + p.name + " again");
        price(p, true);
      }
    for (std::vector<plan>* plans : {&tried, &named_})  // with what the others' turns brought
      for (plan& p : *plans) price(p);
  }

  void price(plan& p, bool again = false) {
    const auto between = [&](const decision_edge& e) { return segments_.is_between(e); };
    if (profiler_.ask_conversions(p.choices, between)) costs_ = profiler_.costs_so_far();
    const bool known = profiler_.knows(p.choices);  // or its segments differ from what its parts are thought to take
    p.additive_ms = evaluate(costs_.expected, p.choices).time;
    p.predicted_ms = segments_.between(p, costs());
    p.segment_ms.clear();
    for (std::size_t i = 0; i < segments_.size(); ++i) {
      const double whole = segments_.whole(p, i, profiler_, again);
      if (known) corrections_[i].add(p.choices, whole - segments_.parts(p, i, costs()));
      p.predicted_ms += whole;
      p.segment_ms.push_back(whole);
    }
  }

  // Without the choices of the nodes that corrections added.
  std::vector<int> first(std::vector<int> choices) const {
    choices.resize(d_.nodes.size());
    return choices;
  }

  // Where only bounds are known of what the best plan uses, that is measured and the graph solved again: what is left
  // of bounds then does not undercut it by more than the tolerance. When that has taken as long as measuring the rest
  // would, the rest is measured.
  template <class Limit>
  solution best(const Limit& limited, double have = std::numeric_limits<double>::infinity()) {
    const auto start = std::chrono::steady_clock::now();
    double asking = 0;
    const auto make = [&] {
      return partly_known{limited(corrected(costs_.least)), limited(corrected(costs_.expected))};
    };
    const auto ask = [&](const std::vector<int>& choices, const excess_wanted& excess) {
      asked out;
      asking += timed([&] {
        out = profiler_.ask(first(choices), excess);
        if (out.figures == 0) return;
        const double solving = solve_seconds + seconds_since(start) - asking;
        if (profiler_.agreed(solving + pricing_seconds_ < profiler_.seconds_left()))
          pricing_seconds_ += timed([&] { costs_ = profiler_.costs_so_far(); });
        else costs_.least = costs_.expected = profiler_.build();
      });
      return out;
    };
    const solution s = solve_lazily(tolerance, make, ask, have);
    solve_seconds += seconds_since(start) - asking;
    return s;
  }

  static double seconds_since(std::chrono::steady_clock::time_point begin) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }
  template <class Work>
  static double timed(const Work& work) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    return seconds_since(begin);
  }

  const graph& g_;
  const mesh_shape& mesh_;
  const decision_graph& d_;
  const segment_times& segments_;
  profiler& profiler_;
  partly_known costs_;
  std::vector<correction> corrections_;
  std::vector<std::pair<std::string, std::vector<int>>> asked_for_;
  std::vector<std::vector<int>> remembered_;
  std::vector<plan> named_;
  double pricing_seconds_ = 0;
};

}  // namespace cfp
