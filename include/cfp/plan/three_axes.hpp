// Plans on meshes of three axes: solved together where there are few strategies, else two axes at a time.
#pragma once

#include <cfp/plan/mesh_plans.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <set>
#include <utility>
#include <vector>

namespace cfp::inline v0_1::detail {

// What the parts of a plan do on an axis.
inline held_axis held_of(const decision_graph& d, const std::vector<int>& choices, int from, int to) {
  held_axis out{to, {}};
  for (std::size_t n = 0; n < d.nodes.size(); ++n)
    if (d.nodes[n].kind == decision::strategy_of_part)
      out.of_part.push_back(d.nodes[n].strategies[static_cast<std::size_t>(choices[n])][from]);
  return out;
}

// Choices of the parts that do on the axes a and a + 1 what they do on the one that stands for both; others are open.
inline std::vector<int> on_both(const decision_graph& two, const std::vector<int>& choices, const decision_graph& three,
                                int a) {
  std::vector<int> out(three.nodes.size(), -1);
  for (std::size_t n = 0; n < three.nodes.size(); ++n) {
    if (three.nodes[n].kind != decision::strategy_of_part) continue;
    strategy wanted = two.nodes[n].strategies[static_cast<std::size_t>(choices[n])];
    wanted.insert(a, wanted[a]);
    const auto& all = three.nodes[n].strategies;
    for (std::size_t c = 0; c < all.size() && out[n] < 0; ++c)
      if (all[c] == wanted) out[n] = static_cast<int>(c);
  }
  return out;
}

// A mesh whose axes a and a + 1 are one.
inline mesh_shape joined(const mesh_shape& mesh, int a) {
  mesh_shape out;
  for (int i = 0; i < mesh.rank(); ++i) {
    if (i == a + 1) out.axes[i - 1].size *= mesh.size(i);
    else out.axes.push(mesh.axes[i]);
  }
  return out;
}

// About how many strategies unique parts have on three axes, by those they have on two.
inline double strategies_on_three(const decision_graph& two) {
  double out = 0;
  std::set<const void*> seen;
  for (const decision& n : two.nodes)
    if (n.kind == decision::strategy_of_part && seen.insert(n.assigned.id()).second)
      out += std::pow(static_cast<double>(n.choices()), 1.5);
  return out;
}

// Plans that were found among some, held to what is known of all.
inline void certify(priced_plans& plans, double bound) {
  plans.bound = bound;
  for (evaluated& e : plans.candidates) {
    const double sum = e.p.additive_ms;
    e.gap = sum > bound ? (sum - bound) / sum : 0;
  }
}

using begin_with = std::function<std::vector<int>(const decision_graph&)>;

// The best plans by sums of parts, and one that makes given choices, without those that people use.
inline mesh_plans by_sums(const planned_graph& g, const machine& m, const mesh_shape& mesh,
                          const machine_options& options, described_conversions& conversions,
                          const held_axis& held = {}, const begin_with& begin = {}) {
  mesh_plans out{mesh, decided(g, mesh, options, held), {}};
  machine_search search(g.g, mesh, out.decisions, m, options, &g.again, &conversions);
  out.plans = search.by_sums(begin ? begin(out.decisions) : std::vector<int>());
  return out;
}

// Two axes are solved while the third does what it did in the best plan so far, each in turn, until nothing is gained.
// Begins with the best plan of two axes, one of which stands for two of the three. Ends after each had its turn where
// another mesh, of two axes, is known to be much faster. That says nothing of how far its plans are from the best.
inline mesh_plans in_turn(const planned_graph& g, const machine& m, const mesh_shape& mesh,
                          const std::vector<mesh_plans>& known, const machine_options& options,
                          described_conversions& conversions) {
  mesh_plans best{mesh, {}, {}};
  held_axis held;
  double of_others = std::numeric_limits<double>::infinity();
  for (const mesh_plans& on : known) of_others = std::min(of_others, on.ms());
  double least = std::numeric_limits<double>::infinity();
  begin_with begin;
  for (const int a : {0, 1}) {
    const auto same = [&](const mesh_plans& on) { return sizes_text(on.mesh) == sizes_text(joined(mesh, a)); };
    const auto at = std::find_if(known.begin(), known.end(), same);
    std::optional<mesh_plans> made;
    const mesh_plans& two = at != known.end() ? *at : made.emplace(of_mesh(g, m, joined(mesh, a), options));
    best.plans.least = two.plans.least;
    if (!(two.ms() < least)) continue;
    least = two.ms();
    const std::vector<int> choices = two.plans.found()->p.choices;
    held = held_of(two.decisions, choices, 1 - a, 2 - 2 * a);
    begin = [=, in = two.decisions](const decision_graph& three) { return on_both(in, choices, three, a); };
  }
  machine_options how = options;
  const auto worthwhile = [&](int turn) {
    return turn == 0 || (!options.over() && (turn < mesh.rank() || best.ms() <= options.behind * of_others));
  };
  for (int turn = 0, idle = 0; held.axis >= 0 && idle < mesh.rank() - 1 && worthwhile(turn); ++turn) {
    mesh_plans now = by_sums(g, m, mesh, how, conversions, held, std::exchange(begin, nullptr));
    const bool gained = now.ms() < best.ms() * (1 - options.gain);
    idle = gained ? 0 : idle + 1;
    if (now.plans.fitted) how.known_limit = now.plans.fitted;
    const int next = (held.axis + 1) % mesh.rank();
    if (now.ms() < best.ms() || best.decisions.nodes.empty()) best = std::move(now);
    if (best.plans.found() == nullptr) break;
    held = held_of(best.decisions, best.plans.found()->p.choices, next, next);
  }
  return best;
}

// Three axes together where they have few enough strategies; in turn where not, or where solving them together ended
// before its end. What is known of the best is known only of all strategies together.
inline mesh_plans of_three_axes(const planned_graph& g, const machine& m, const mesh_shape& mesh,
                                const std::vector<mesh_plans>& known, const machine_options& options) {
  described_conversions conversions(m, mesh);
  std::optional<mesh_plans> all;
  if (strategies_on_three(decided(g, joined(mesh, 0), options)) <= options.together) {
    all = by_sums(g, m, mesh, options, conversions);
    if (all->plans.candidates.empty() || all->plans.candidates.front().gap <= options.gap) return std::move(*all);
  }
  mesh_plans out = in_turn(g, m, mesh, known, options, conversions);
  certify(out.plans, all ? all->plans.bound : -std::numeric_limits<double>::infinity());
  return all && all->ms() <= out.ms() ? std::move(*all) : std::move(out);
}

}  // namespace cfp::detail
