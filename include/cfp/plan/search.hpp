// The search: solve, run the best plan's segments whole, keep how they differ from the sum of their parts, solve again.
#pragma once

#include <cfp/plan/named.hpp>
#include <cfp/plan/segment_times.hpp>
#include <cfp/solve/correction.hpp>

#include <chrono>
#include <optional>

namespace cfp {

/// No plan keeps the memory limit. `least` is what the leanest plan needs, in bytes (0: not known).
struct nothing_fits {
  long limit = 0, least = 0;
};

struct search_options {
  std::optional<long> memory_limit{};  ///< bytes a rank may use
  int rounds = 6;                      ///< most plans whose segments are run whole
};

class plan_search {
 public:
  plan_search(const graph& g, const mesh_shape& mesh, const decision_graph& d, const segment_times& segments,
              profiler& measure_with, cost_graph costs)
      : g_(g), mesh_(mesh), d_(d), segments_(segments), profiler_(measure_with), costs_(std::move(costs)) {
    for (std::size_t i = 0; i < segments_.size(); ++i) corrections_.emplace_back(segments_.decisions(i), costs_);
  }

  double solve_seconds = 0;
  int rounds = 0;  ///< plans tried
  double gap = 0;  ///< how much faster, relatively, the sums of parts still think an untried plan might be

  const cost_graph& costs() const { return costs_; }

  /// The best plan with some decisions fixed (choice >= 0), its segments run whole. Nothing if there is none.
  std::optional<plan> best_with(const std::string& label, const std::vector<int>& choices) {
    const solution s = timed_solve(fixed(corrected(), choices));
    if (!s.feasible) return std::nullopt;
    plan p = realise(label, g_, mesh_, d_, first(s.choices));
    price(p);
    return p;
  }

  /// The fastest plan within the limit. Throws `nothing_fits`.
  plan best(const search_options& options, const std::function<void(int round)>& tell = {}) {
    std::optional<plan> found;
    // The sum + largest bound of memory is a model; a lowered plan that exceeds the limit is excluded with its like.
    std::optional<std::int64_t> bound = options.memory_limit;
    for (int tries = 0; rounds < options.rounds && tries < options.rounds + 20; ++tries) {
      cost_graph now = corrected();
      now.memory_limit = bound;
      const solution s = timed_solve(now);
      if (!s.feasible) {
        if (found) break;
        throw nothing_fits{*bound, s.least_memory ? static_cast<long>(*s.least_memory + *options.memory_limit - *bound) : 0};
      }
      plan p = realise("found", g_, mesh_, d_, first(s.choices));
      if (const long over = options.memory_limit ? predicted_peak(p.code) - *options.memory_limit : 0; over > 0) {
        *bound -= over;
        continue;
      }
      const bool known = knows(p);
      if (tell) tell(rounds);
      price(p);
      if (!known) ++rounds;
      if (!found || p.predicted_ms < found->predicted_ms) found = p;
      gap = known ? 0 : std::max(0.0, 1 - s.bound / found->predicted_ms);
      if (known) break;
    }
    if (!found) throw nothing_fits{*options.memory_limit, 0};
    return *found;
  }

 private:
  bool knows(const plan& p) const {
    bool all = true;
    for (const correction& c : corrections_) all = all && c.knows(p.choices);
    return all;
  }

  void price(plan& p) {
    p.additive_ms = evaluate(costs_, p.choices).time;
    p.predicted_ms = segments_.between(p, costs_);
    for (std::size_t i = 0; i < segments_.size(); ++i) {
      const double whole = segments_.whole(p, i, profiler_);
      corrections_[i].add(p.choices, whole - segments_.parts(p, i, costs_));
      p.predicted_ms += whole;
    }
  }

  cost_graph corrected() const {
    cost_graph out = costs_;
    for (const correction& c : corrections_) c.write(out);
    return out;
  }

  // Without the choices of the nodes that corrections added.
  std::vector<int> first(std::vector<int> choices) const {
    choices.resize(d_.nodes.size());
    return choices;
  }

  solution timed_solve(const cost_graph& of) {
    const auto begin = std::chrono::steady_clock::now();
    const solution s = solve(of);
    solve_seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return s;
  }

  const graph& g_;
  const mesh_shape& mesh_;
  const decision_graph& d_;
  const segment_times& segments_;
  profiler& profiler_;
  cost_graph costs_;
  std::vector<correction> corrections_;
};

}  // namespace cfp
