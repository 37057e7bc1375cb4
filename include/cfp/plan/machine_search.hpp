// Planning for a machine that is described: candidates by their sums of parts, then all plans priced alike, by the program they become.
#pragma once

#include <cfp/plan/alpa.hpp>
#include <cfp/plan/usual_plans.hpp>
#include <cfp/profile/roofline.hpp>
#include <cfp/profile/timeline.hpp>

#include <chrono>
#include <optional>

namespace cfp::inline v0_1 {

/// A plan and what the one evaluator says of it.
struct evaluated {
  plan p;                  ///< its program is lowered, ordered and its memory planned
  timeline when;           ///< milliseconds of a step
  long peak = 0;           ///< bytes of a device
  bool fits = true;        ///< within the limit
  double seconds = 0;      ///< that finding it took
};

struct machine_options {
  long memory = 0;          ///< bytes of a device a plan may use; 0: what the machine's devices have
  long real_bytes = 2;      ///< of a number that is not wide
  bool overlap = true;      ///< collectives run beside operators
  double solve_seconds = 20;  ///< most for one solution
  /// Shares of what weights and their gradients communicate that candidates are found by: work beside it hides the rest.
  std::vector<double> counted = {1, 0.5, 0};
};

class machine_search {
 public:
  /// All must outlive this.
  machine_search(const graph& g, const mesh_shape& mesh, const decision_graph& d, const machine& m, const machine_options& options = {})
      : g_(g), mesh_(mesh), d_(d), machine_(m), options_(options), times_(m, mesh) {
    if (options_.memory == 0) options_.memory = m.device.memory;
  }

  long limit() const { return options_.memory; }

  /// Sums of parts, of what weights communicate a share.
  const cost_graph& costs(double counted = 1) {
    auto& known = costs_[counted];
    if (!known) {
      roofline prices(g_, mesh_, d_, times_, options_.real_bytes);
      prices.of_weights = counted;
      known = prices.build();
    }
    return *known;
  }

  /// Prices a plan by its program.
  evaluated evaluate(const std::string& label, const std::vector<int>& choices, schedule order = {}) {
    order.overlap = options_.overlap;
    evaluated out;
    out.p = realise(label, g_, mesh_, d_, choices, options_.real_bytes, order);
    std::vector<double> ms;
    for (const instruction& i : out.p.code.code) ms.push_back(times_(i, out.p.code, g_));
    out.when = simulate(out.p.code, ms, machine_.device.contention);
    out.p.predicted_ms = out.when.ms;
    out.p.additive_ms = cfp::evaluate(costs(), choices).time;
    out.peak = predicted_peak(out.p.code);
    out.fits = out.peak <= options_.memory;
    return out;
  }

  /// A plan people use, what it leaves open solved; nothing if the model or the mesh does not allow it.
  std::optional<evaluated> usual(const named_plan& p) {
    const auto begin = clock::now();
    const solution s = solve(fixed(costs(), follow(p, d_, mesh_)), brief());
    if (!s.feasible) return std::nullopt;
    evaluated out = evaluate(p.name, s.choices, p.order);
    out.seconds = since(begin);
    return out;
  }

  /// Alpa's plan, found by a policy of the solver. Within the limit if `limited`; nothing if there is none.
  template <class Policy = exact_policy>
  std::optional<evaluated> alpa(bool limited, const Policy& by = {}) {
    const auto begin = clock::now();
    if (!alpa_) alpa_ = alpa_costs(g_, mesh_, d_, options_.real_bytes).build();
    cost_graph now = *alpa_;
    if (limited) now.memory_limit = options_.memory;
    const solution s = by.solve(now, brief());
    if (!s.feasible) return std::nullopt;
    const std::vector<int> choices = reduce_scattered(s.choices, d_, [&](const std::vector<int>& open) { return by.solve(fixed(costs(), open), brief()).choices; });
    evaluated out = evaluate(limited ? "alpa_in_memory" : "alpa", choices);
    out.seconds = since(begin);
    return out;
  }

  /// The best plans within the limit by their sums of parts, one per share of weights' communication that is counted: different ones,
  /// not yet in order. Empty if nothing fits; `least` then holds the bytes the leanest plan needs, as far as known.
  std::vector<evaluated> candidates() {
    std::vector<evaluated> out;
    for (const double counted : options_.counted) {
      const auto begin = clock::now();
      std::optional<std::int64_t> bound = options_.memory;
      for (int attempt = 0; attempt < 8; ++attempt) {
        cost_graph now = costs(counted);
        now.memory_limit = bound;
        const solution s = solve(now, brief());
        if (!s.feasible) {  // sum and largest bound the memory of a program from above: what needs little more by them may fit
          if (attempt > 0 || !s.least_memory || *s.least_memory > *bound + *bound / 2) {
            if (s.least_memory) least = static_cast<long>(*s.least_memory);
            break;
          }
          bound = *s.least_memory;
          continue;
        }
        evaluated e = evaluate("found", s.choices);
        if (!e.fits) {
          *bound -= e.peak - options_.memory;
          continue;
        }
        e.seconds = since(begin);
        bool known = false;
        for (const evaluated& other : out) known = known || other.p.choices == e.p.choices;
        if (!known) out.push_back(std::move(e));
        break;
      }
    }
    return out;
  }

  long least = 0;

 private:
  using clock = std::chrono::steady_clock;
  static double since(clock::time_point t) { return std::chrono::duration<double>(clock::now() - t).count(); }
  solve_options brief() const {
    solve_options o;
    o.max_seconds = options_.solve_seconds;
    return o;
  }

  const graph& g_;
  const mesh_shape& mesh_;
  const decision_graph& d_;
  const machine& machine_;
  machine_options options_;
  described_times times_;
  std::map<double, std::optional<cost_graph>> costs_;
  std::optional<cost_graph> alpa_;
};

}  // namespace cfp
