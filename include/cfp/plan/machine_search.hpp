// Planning for a machine that is described: candidates by their sums of parts, then all plans priced alike, by the
// program they become.
#pragma once

#include <cfp/plan/folded_decisions.hpp>
#include <cfp/plan/leaner_plans.hpp>
#include <cfp/plan/limited_search.hpp>
#include <cfp/plan/machine_costs.hpp>
#include <cfp/plan/machine_options.hpp>
#include <cfp/plan/narrowed.hpp>
#include <cfp/plan/plan_evaluator.hpp>
#include <cfp/plan/usual_plans.hpp>
#include <cfp/profile/machine/described_conversions.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>

namespace cfp::inline v0_1 {

class machine_search {
 public:
  /// Graph, mesh, decisions, repeats and conversions must outlive this. Without repeats plans are priced by the whole
  /// program; conversions are found here where none are given. `of_others`: milliseconds of a plan on another mesh.
  machine_search(const graph& g, const mesh_shape& mesh, const decision_graph& d, const machine& m,
                 const machine_options& options = {}, const repeats* again = nullptr,
                 described_conversions* conversions = nullptr,
                 double of_others = std::numeric_limits<double>::infinity())
      : g_(g), mesh_(mesh), d_(d), machine_(m), own_conversions_(m, mesh),
        conversions_(conversions != nullptr ? *conversions : own_conversions_),
        options_(options.on(m.device.memory, conversions_.prices)), times_(m, mesh, options.known),
        programs_(g, again, mesh, options_, times_, conversions_.known), evaluator_(g, d, options_, programs_),
        folded_(d, again), of_others_(of_others), within_limit_(of_limit({options_.behind * of_others, {}})) {}

  const described_times& times() const { return times_; }

  /// Sums of parts, with the first share of what weights communicate.
  const cost_graph& costs() { return prices().counted.front(); }
  double sum_of(const std::vector<int>& choices) { return folded_.time(costs(), choices); }
  /// The best by these that makes some choices (>= 0).
  solution best_with(const std::vector<int>& choices) {
    return detail::solved(options_, folded_, [&, &sums = costs()] {
      return solve(folded_.of(fixed(sums, choices)), options_.of_solver());
    });
  }

  /// Prices a plan by its program; where layers stand for many, by few of them.
  evaluated evaluate(const std::string& label, const std::vector<int>& choices, const schedule& order = {}) {
    return folded_ ? estimate(label, choices, order) : evaluator_.whole(label, choices, order, sum_of(choices));
  }
  /// The same by few of its equal segments, where they tell.
  evaluated estimate(const std::string& label, const std::vector<int>& choices, const schedule& order = {}) {
    return evaluator_.by_few(label, choices, order, sum_of(choices));
  }

  /// A plan people use, what it leaves open solved; nothing if the model or the mesh does not allow it.
  std::optional<evaluated> usual(const named_plan& p) { return with(p.name, follow(p, d_, mesh_), p.order); }

  /// That of `best_with`.
  std::optional<evaluated> with(const std::string& label, const std::vector<int>& choices, const schedule& order = {}) {
    const auto begin = clock::now();
    const solution s = best_with(choices);
    if (!s.feasible) return std::nullopt;
    evaluated out = estimate(label, s.choices, order);
    out.seconds = since(begin);
    out.gap = s.gap();
    return out;
  }

  /// Alpa's plan, found by a policy of the solver. Within the limit if `limited`; nothing if there is none.
  template <class Policy = exact_policy>
  std::optional<evaluated> alpa(bool limited, const Policy& by = {}) {
    const auto begin = clock::now();
    cost_graph now = prices().alpa;
    if (limited) now.memory_limit = options_.memory;
    return in_alpas_way(limited ? "alpa_in_memory" : "alpa", now, by, begin);
  }

  /// The same by sums of parts that are given.
  std::optional<evaluated> alpa_by(const char* label, const cost_graph& sums) {
    return in_alpas_way(label, sums, exact_policy(), clock::now());
  }

  /// The best within the limit by sums of parts, one per share of weights' communication; none if none was found to
  /// fit.
  std::vector<evaluated> candidates() {
    return candidates(within_limit_, [](const cost_graph& sums) -> const cost_graph& { return sums; });
  }

  /// Found plans, then, while there is time, those people use, and Alpa's: the best, and where that does not fit the
  /// best within the limit.
  priced_plans compare() {
    priced_plans out;
    out.candidates = candidates(), out.bound = within_limit_.bound();
    return ended(compared(std::move(out)));
  }

  /// The same, with the plans that were found on a mesh that is this one in another order: parts choose as given for
  /// each of its candidates, all else is solved.
  priced_plans compare(const priced_plans& elsewhere, const std::vector<std::vector<int>>& begin) {
    priced_plans out;
    out.bound = elsewhere.bound;
    for (const std::vector<int>& choices : begin)
      if (auto e = within_limit_.fastest(fixed(costs(), choices), false)) {
        e->gap = std::max(0.0, 1 - out.bound / e->p.additive_ms);
        out.candidates.push_back(*std::move(e));
      }
    out = compared(std::move(out));
    add_leaner(*this, d_, options_, out);
    lower_found(out);
    out.least = evaluator_.least > 0 ? evaluator_.least : elsewhere.least;
    out.limited = elsewhere.limited, out.free_ms = elsewhere.free_ms, out.fitted = elsewhere.fitted;
    return out;
  }

  /// With those of `known`, whose decisions have these choices first, plans that compute again what they keep, or leave
  /// it or state on the host. More choices may find less, by sums: each way alone is searched for beside them.
  /// `within`: milliseconds beyond which nobody asks for a plan.
  priced_plans with_less_kept(priced_plans known, double within = std::numeric_limits<double>::infinity()) {
    std::vector<evaluated> less = candidates();
    const time_limit about = time_limit::near(priced_plans::fastest(less), of_others_, options_.unsure);
    for (const auto& only : with_less_choice(d_)) {
      if (options_.over() || within_limit_.hopeless()) break;
      if (!options_.again && within_limit_.was_among(only(costs()))) continue;
      limited_search search = of_limit(about);
      for (evaluated& e : candidates(search, only)) less.push_back(std::move(e));
    }
    known.candidates.insert(known.candidates.begin(), less.begin(), less.end());
    known.bound = within_limit_.bound(), known.sums = costs(), evaluator_.least = known.least;
    add_leaner(*this, d_, options_, known, within);
    return ended(std::move(known));
  }

  /// The plan to take has its program from here on; where layers stand for many, that of those there are.
  void lower_found(priced_plans& out) {
    if (evaluated* e = out.found(); e != nullptr && folded_) {
      e->p.shards = shard(g_, d_, e->p.choices);
      e->p.code = programs_.lowered(g_, e->p.shards, e->order);
    }
    for (evaluated* e = out.found(); e != nullptr && !e->whole && !folded_; e = out.found()) {
      evaluated whole = evaluate(e->p.name, e->p.choices, e->order);
      whole.seconds = e->seconds, whole.gap = e->gap;
      *e = std::move(whole);
    }
  }

  /// Candidates alone, and a plan that makes some choices (>= 0), if any are given.
  priced_plans by_sums(const std::vector<int>& begin = {}) {
    priced_plans out;
    out.candidates = candidates(), out.bound = within_limit_.bound();
    if (!begin.empty())
      if (auto e = within_limit_.fastest(fixed(costs(), begin), false)) out.candidates.push_back(std::move(*e));
    return ended(std::move(out));
  }

 private:
  using clock = std::chrono::steady_clock;

  priced_plans compared(priced_plans out) {
    for (const named_plan& p : usual_plans(mesh_, has_experts(g_)))
      if (!options_.over())
        if (auto e = usual(p)) out.usual.push_back(std::move(*e));
    for (const bool limited : {false, true})
      if (!options_.over() && (!limited || out.alpa.empty() || !out.alpa[0].fits))
        if (auto e = alpa(limited)) out.alpa.push_back(std::move(*e));
    out.sums = costs();
    return out;
  }

  // The same of what `only` leaves of the sums.
  template <class Only>
  std::vector<evaluated> candidates(limited_search& search, const Only& only) {
    std::vector<evaluated> out;
    const bool all = &search == &within_limit_;
    for (const cost_graph& sums : prices().counted) {
      const auto begin = clock::now();
      const bool of_all = &sums == &prices().counted.front();
      if ((!out.empty() && options_.over()) || (!of_all && mesh_.devices() == 1)) break;  // one sends nothing
      std::optional<evaluated> best = search.fastest(only(sums), sums, of_all);
      if (!best && of_all && all) break;  // memory is the same for all, and what is far too slow is that by any
      if (!best) continue;
      best->seconds = since(begin);
      if (all && of_all) fitted_by_first_ = search.fitted();
      const auto same = [&](const evaluated& other) { return other.p.choices == best->p.choices; };
      if (std::none_of(out.begin(), out.end(), same)) out.push_back(std::move(*best));
    }
    return out;
  }

  limited_search of_limit(time_limit within) {
    return {folded_, options_, [this](const std::vector<int>& choices) { return estimate("found", choices); },
            std::move(within)};
  }

  priced_plans ended(priced_plans out) {
    lower_found(out);
    out.least = evaluator_.least > 0 ? evaluator_.least : within_limit_.least_of_sums();
    out.limited = within_limit_.limited(), out.free_ms = within_limit_.free_ms();
    out.fitted = fitted_by_first_;
    return out;
  }

  template <class Policy>
  std::optional<evaluated> in_alpas_way(const char* label, const cost_graph& priced, const Policy& by,
                                        clock::time_point begin) {
    const solution s =
        detail::solved(options_, folded_, [&] { return by.solve(folded_.of(priced), options_.of_solver()); });
    if (!s.feasible) return std::nullopt;
    const cost_graph& sums = costs();
    evaluated out =
        estimate(label, reduce_scattered(s.choices, d_, [&](const std::vector<int>& open) {
                   return detail::solved(options_, folded_,
                                         [&] { return by.solve(folded_.of(fixed(sums, open)), options_.of_solver()); })
                       .choices;
                 }));
    out.seconds = since(begin);
    out.gap = s.gap();
    return out;
  }
  const machine_costs& prices() {
    if (prices_) return *prices_;
    const stage_timer timer(options_.clock, stage::prices);
    machine_pricing pricing(g_, mesh_, d_, times_, options_.lowered_for, &conversions_.known);
    pricing.of_weights = options_.counted;
    prices_.emplace(pricing.prices());
    if (options_.recompute == recomputing::all)
      for (cost_graph& sums : prices_->counted) sums = only_recomputed(std::move(sums), d_);
    return *prices_;
  }
  static double since(clock::time_point t) { return std::chrono::duration<double>(clock::now() - t).count(); }

  const graph& g_;
  const mesh_shape& mesh_;
  const decision_graph& d_;
  const machine machine_;
  described_conversions own_conversions_;
  described_conversions& conversions_;
  machine_options options_;
  described_times times_;
  program_prices programs_;
  plan_evaluator evaluator_;
  const folding folded_;
  const double of_others_;
  std::optional<machine_costs> prices_;
  limited_search within_limit_;
  std::optional<std::int64_t> fitted_by_first_;  // limit of sums of parts within which a program fits
};

}  // namespace cfp
