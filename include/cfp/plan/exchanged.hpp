// The plan to take of a mesh, its decisions exchanged one by one, the others as they are best then: candidates are the
// best by sums of parts, and one that is near them may have the faster program.
#pragma once

#include <cfp/plan/machine_search.hpp>
#include <cfp/plan/mesh_plans.hpp>

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace cfp::inline v0_1::detail {

class exchanged {
 public:
  /// Search, decisions and options must outlive this.
  exchanged(machine_search& search, const decision_graph& d, const machine_options& options)
      : search_(search), d_(d), options_(options) {}

  /// Adds the plan to candidates, where one is faster; at most so many exchanges of a plan are solved, those first that
  /// alone add least. No plan is looked for where what it may keep is in question.
  void add_to(priced_plans& known, std::size_t most) {
    const evaluated* found = known.found();
    if (found == nullptr || known.limited) return;
    std::vector<int> choices = found->p.choices;
    double least = found->when.ms;
    std::optional<evaluated> best;
    for (int round = 0; round < most_rounds; ++round) {
      std::optional<evaluated> next = nearest(choices, least, most);
      if (!next) break;
      next->gap = std::max(0.0, 1 - known.bound / next->p.additive_ms);
      choices = next->p.choices, least = next->when.ms, best = std::move(next);
    }
    if (!best) return;
    known.candidates.push_back(*std::move(best));
    search_.lower_found(known);
  }

 private:
  static constexpr int most_rounds = 4;
  struct change {
    double sum = 0;
    std::vector<std::size_t> nodes{};
    int to = 0;
  };

  // Those that choose alike, of decisions that are, change together.
  std::vector<change> changes(const std::vector<int>& from) {
    std::map<std::pair<const void*, int>, std::vector<std::size_t>> alike;
    for (std::size_t n = 0; n < d_.nodes.size(); ++n)
      if (d_.nodes[n].choices() > 1) alike[{d_.nodes[n].assigned.id(), from[n]}].push_back(n);
    std::vector<change> out;
    for (const auto& [key, nodes] : alike)
      for (int c = 0; c < static_cast<int>(d_.nodes[nodes[0]].choices()); ++c) {
        if (c == key.second) continue;
        std::vector<int> choices = from;
        for (const std::size_t n : nodes) choices[n] = c;
        out.push_back({search_.sum_of(choices), nodes, c});
      }
    std::stable_sort(out.begin(), out.end(), [&](const change& a, const change& b) {
      return a.sum != b.sum ? a.sum < b.sum : std::pair(a.nodes[0], a.to) < std::pair(b.nodes[0], b.to);
    });
    return out;
  }
  // The fastest plan with one of them, if it is faster.
  std::optional<evaluated> nearest(const std::vector<int>& from, double least, std::size_t most) {
    const double near = search_.sum_of(from) * (1 + options_.unsure);
    std::optional<evaluated> best;
    std::vector<change> all = changes(from);
    all.resize(std::min(all.size(), most));
    for (const change& c : all) {
      if (options_.over()) break;
      std::vector<int> some(d_.nodes.size(), -1);
      for (const std::size_t n : c.nodes) some[n] = c.to;
      const solution s = search_.best_with(some);
      if (!s.feasible || s.time > near) continue;
      evaluated e = search_.estimate("found", s.choices);
      if (e.fits && e.when.ms < (best ? best->when.ms : least * (1 - worth))) best = std::move(e);
    }
    return best;
  }
  static constexpr double worth = 1e-4;  // of a step's time

  machine_search& search_;
  const decision_graph& d_;
  const machine_options& options_;
};

/// Of few axes: of more there are too many choices.
inline void exchange_in(mesh_plans& of, const planned_graph& planned, const machine& m,
                        const machine_options& options) {
  if (of.mesh.rank() > 2 || options.over() || of.plans.found() == nullptr) return;
  machine_search search(planned.g, of.mesh, of.decisions, m, options, &planned.again);
  exchanged(search, of.decisions, options).add_to(of.plans, of.mesh.rank() == 1 ? 32 : 16);
}

}  // namespace cfp::inline v0_1::detail
