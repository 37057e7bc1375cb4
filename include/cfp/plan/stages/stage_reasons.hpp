// Why the stages of a plan are sharded as they are: what else their decisions could choose and what that takes, and
// what more memory would gain them.
#pragma once

#include <cfp/plan/mesh_plans.hpp>
#include <cfp/plan/stages/priced_stages.hpp>
#include <cfp/plan/stages/run_costs.hpp>
#include <cfp/plan/stages/stage_segments.hpp>
#include <cfp/plan/stages/staged_plan.hpp>
#include <cfp/solve/explain/explanation.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace cfp::inline v0_1 {

/// A stage by itself, by sums of parts; milliseconds of a step's micro-batches together.
struct stage_reasons {
  struct decided {
    std::size_t node = 0;  ///< of the decisions; the first of those that are alike in the stage and choose alike
    int choice = 0;        ///< what it took
    int alike = 1;         ///< how many there are
    alternative other{};   ///< the best plan of the stage that chooses otherwise there
  };
  std::vector<int> stages{};        ///< those that are alike
  double ms = 0;                    ///< what one of them takes
  int under_way = 1;                ///< micro-batches, at most
  std::int64_t takes = 0, may = 0;  ///< bytes of a device, and those that other stages of its place leave of it
  std::vector<decided> decisions{};
  std::optional<relaxation> more{};  ///< what 10% more memory for it would gain
};

namespace detail {

class stages_explained {
 public:
  stages_explained(const graph& g, const decision_graph& d, const staged_plan& p, const machine_pools& m,
                   const machine_options& options)
      : d_(d), p_(p), planned_(g, options.lowered_for), segments_(g, segments(g, planned_.blocks), planned_.again),
        places_(m, p.layout.inside, p.layout.places, p.layout.pools), options_(options),
        solve_(options.of_solver(0.05)) {
    for (int pool = 0; pool < places_.pools(); ++pool) of_pool_.emplace_back(g, segments_, d, priced(pool), true);
  }

  std::vector<stage_reasons> run() const {
    std::vector<stage_reasons> out;
    std::map<std::vector<int>, std::size_t> known;  // by what there is to decide, and how
    std::vector<double> takes(static_cast<std::size_t>(p_.layout.places));
    for (int s = 0; s < p_.layout.stages(); ++s) takes[at(s % p_.layout.places)] += bytes_of(s);
    for (int s = 0; s < p_.layout.stages(); ++s) {
      const double mine = bytes_of(s), others = takes[at(s % p_.layout.places)] - mine;
      const auto may = std::max(static_cast<std::int64_t>(mine), memory(s) - static_cast<std::int64_t>(others));
      std::vector<int> key = costs(s).kinds(first(s), end(s));
      key.insert(key.end(), {under_way(s), static_cast<int>(may >> 20), places_.pool_of_stage(s)});
      for (const std::size_t n : costs(s).nodes(first(s), end(s))) key.push_back(p_.choices[n]);
      const auto [of, fresh] = known.try_emplace(std::move(key), out.size());
      if (fresh) out.push_back(explained(s, static_cast<std::int64_t>(mine), may));
      out[of->second].stages.push_back(s);
    }
    return out;
  }

 private:
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }
  stage_costs priced(int pool) const {
    const mesh_shape& inside = p_.layout.inside;
    const machine one = places_.one_place(pool);
    described_conversions conversions(one, inside);
    known_instructions* const known = places_.pools() == 1 ? options_.known : nullptr;
    return priced_stages(planned_, segments_, d_, places_, described_times(one, inside, known), options_.lowered_for,
                         &conversions.known);
  }
  const run_costs& costs(int stage) const { return of_pool_[at(places_.pool_of_stage(stage))]; }
  std::int64_t memory(int stage) const {
    return options_.memory > 0 ? options_.memory : places_.own(places_.pool_of_stage(stage)).device.memory;
  }
  int first(int s) const { return s > 0 ? p_.ends[at(s - 1)] : 0; }
  int end(int s) const { return p_.ends[at(s)]; }
  int under_way(int s) const { return p_.layout.under_way(s, p_.micro_batches); }
  std::vector<int> chosen(const run_part& part) const {
    std::vector<int> out;
    for (const std::size_t n : part.nodes) out.push_back(p_.choices[n]);
    return out;
  }
  double bytes_of(int s) const {
    const run_part part = costs(s).part(first(s), end(s));
    const stage_option o = part.option(chosen(part), p_.micro_batches);
    return o.always + under_way(s) * o.kept;
  }

  bool keeps_all(const run_part& part, const std::vector<int>& choices) const {
    for (std::size_t n = 0; n < choices.size(); ++n)
      if (at(choices[n]) >= d_.nodes[part.nodes[n]].kept_all()) return false;
    return true;
  }
  // Nobody computes again what fits.
  void leave_out_less(const run_part& part, cost_graph& g) const {
    for (std::size_t n = 0; n < part.nodes.size(); ++n) {
      std::vector<double> ms = g.nodes[n].time.all();
      for (std::size_t c = d_.nodes[part.nodes[n]].kept_all(); c < ms.size(); ++c) ms[c] = infinite_time;
      g.nodes[n].time = std::move(ms);
    }
  }
  stage_reasons explained(int s, std::int64_t takes, std::int64_t may) const {
    const run_part part = costs(s).part(first(s), end(s));
    cost_graph g = part.with(under_way(s));
    g.memory_limit = may;
    stage_reasons out;
    solution mine;
    mine.choices = chosen(part), mine.feasible = true;
    if (keeps_all(part, mine.choices)) leave_out_less(part, g);
    mine.time = mine.bound = evaluate(g, mine.choices).time;
    out.ms = mine.time, out.under_way = under_way(s), out.takes = takes, out.may = may;
    std::map<std::pair<const void*, int>, std::size_t> alike;
    std::vector<bool> asked(part.nodes.size());
    std::vector<std::size_t> place;
    for (std::size_t n = 0; n < part.nodes.size(); ++n) {
      const decision& x = d_.nodes[part.nodes[n]];
      if (x.kind != decision::strategy_of_part || x.choices() < 2) continue;
      const auto [of, fresh] = alike.try_emplace({x.assigned.id(), mine.choices[n]}, out.decisions.size());
      asked[n] = fresh;
      if (fresh) out.decisions.push_back({part.nodes[n], mine.choices[n]}), place.push_back(n);
      else ++out.decisions[of->second].alike;
    }
    const std::vector<alternative> others = alternatives(g, mine, solve_, asked);
    for (std::size_t k = 0; k < place.size(); ++k) out.decisions[k].other = others[place[k]];
    if (const solution best = solve(g, solve_); best.feasible) out.more = relaxed(g, best, 1.1, solve_);
    return out;
  }

  const decision_graph& d_;
  const staged_plan& p_;
  const planned_graph planned_;
  const stage_segments segments_;
  const placed_pools places_;
  const machine_options options_;
  std::deque<run_costs> of_pool_;
  const solve_options solve_;
};

}  // namespace detail

/// Of each stage of a plan, what else it could choose, all others as they are. `g` and `d`: what the plan is of.
inline std::vector<stage_reasons> reasons(const graph& g, const decision_graph& d, const staged_plan& p,
                                          const machine_pools& m, const machine_options& options) {
  return detail::stages_explained(g, d, p, m, options).run();
}

namespace detail {

inline std::string to_text(const stage_reasons::decided& x, const decision& n, double ms) {
  const auto called = [&](int choice) { return n.names[static_cast<std::size_t>(choice)]; };
  std::string out = "  " + n.label + (x.alike > 1 ? " and " + std::to_string(x.alike - 1) + " alike" : "") + ": " +
                    called(x.choice) + "; ";
  if (!x.other.proven)
    out += std::string("any other would be at ") + (x.other.price > 0 ? "least " : "most ") +
           slower_text(x.other.price, ms);
  else if (x.other.choice < 0) out += "no other fits";
  else out += called(x.other.choice) + " would be " + slower_text(x.other.price, ms);
  return out + '\n';
}

}  // namespace detail

/// For people: what is said of a stage stands for all that are like it.
inline std::string to_text(const std::vector<stage_reasons>& all, const decision_graph& d) {
  std::string out;
  for (const stage_reasons& s : all) {
    out += s.stages.size() > 1 ? "\nstages " : "\nstage ";
    for (const int n : s.stages) out += (n == s.stages.front() ? "" : ", ") + std::to_string(n);
    out += ": " + detail::time_text(s.ms) + " ms a step, " + std::to_string(s.under_way) + " micro-batch" +
           (s.under_way > 1 ? "es" : "") + " under way, " + detail::bytes_text(s.takes) + " of " +
           detail::bytes_text(s.may) + '\n';
    for (const stage_reasons::decided& x : s.decisions) out += detail::to_text(x, d.nodes[x.node], s.ms);
    if (s.more) out += "  " + to_text(*s.more);
  }
  return out;
}

}  // namespace cfp
