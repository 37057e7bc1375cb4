// What the next-best choice of each node of a solved plan would cost.
#pragma once

#include <cfp/core/bad_input.hpp>
#include <cfp/solve/exact/exact.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <limits>
#include <optional>
#include <stdexcept>
#include <vector>

namespace cfp::inline v0_1 {

/// The best plan, within the memory limit if there is one, that takes another choice at one node.
struct alternative {
  int choice = -1;                                         ///< which one it takes there; -1 if no such plan is known
  double time = std::numeric_limits<double>::infinity();   ///< of that plan; +infinity if there is none
  double price = std::numeric_limits<double>::infinity();  ///< `time` less that of the solved plan
  bool proven = true;  ///< else `time` and `price` are lower bounds, `choice` is of the best plan found
};

namespace detail {

inline alternative alternative_at(int choice, double price, const solution& solved) {
  if (solved.optimal) price = std::max(price, 0.0);  // rounding
  return {choice, solved.time + price, price, true};
}

struct times_through_t {
  double least = infinite_time;         // of all plans
  std::vector<std::vector<double>> of;  // of those that make a choice of a node; infinite: there is none
};
/// What the best plan takes through each choice of each node, if no table needs splitting. For a graph without a memory
/// limit. Dominance would drop what is asked for.
inline std::optional<times_through_t> times_through(const cost_graph& g, const solve_options& options) try {
  const problem p = make_problem(g);
  elimination e(p, options.max_entries / 2, work_meter(options).left() / 4, options.stop);
  if (!e.exact()) return std::nullopt;
  e.run(0);
  e.run_through();
  times_through_t out{e.total(), {}};
  for (std::size_t n = 0; n < g.nodes.size(); ++n) {
    out.of.emplace_back(g.nodes[n].time.size(), infinite_time);
    for (std::size_t c = 0; c < p.nodes[n].size(); ++c)
      out.of[n][static_cast<std::size_t>(p.nodes[n].original[c])] = e.through_choice(n, c);
  }
  return out;
} catch (const stopped&) {
  return std::nullopt;
}

/// For all nodes at once.
inline std::optional<std::vector<alternative>> alternatives_by_elimination(const cost_graph& g, const solution& solved,
                                                                           const solve_options& options) {
  const std::optional<times_through_t> through = times_through(g, options);
  if (!through) return std::nullopt;
  const double optimum = solved.optimal ? through->least : solved.time;
  std::vector<alternative> out(g.nodes.size());
  for (std::size_t n = 0; n < out.size(); ++n) {
    const std::vector<double>& ms = through->of[n];
    std::size_t next = ms.size();
    for (std::size_t c = 0; c < ms.size(); ++c) {
      if (static_cast<int>(c) == solved.choices[n] || ms[c] == infinite_time) continue;
      if (next == ms.size() || ms[c] < ms[next]) next = c;
    }
    if (next < ms.size()) out[n] = alternative_at(static_cast<int>(next), ms[next] - optimum, solved);
  }
  return out;
}

/// By solving once more for every node, its choice forbidden, each time within an equal share of the budget that is
/// left.
inline std::vector<alternative> alternatives_by_solving(const cost_graph& g, const solution& solved,
                                                        const solve_options& options, const std::vector<bool>& asked) {
  std::vector<alternative> out(g.nodes.size());
  std::vector<std::size_t> open;  // nodes with another choice
  for (std::size_t n = 0; n < out.size(); ++n) {
    if (!asked.empty() && !asked[n]) continue;
    for (std::size_t c = 0; c < g.nodes[n].time.size(); ++c) {
      if (static_cast<int>(c) == solved.choices[n] || g.nodes[n].time[c] == infinite_time) continue;
      open.push_back(n);
      break;
    }
  }
  cost_graph restricted = g;
  work_meter meter(options);
  const auto begin = std::chrono::steady_clock::now();
  for (std::size_t k = 0; k < open.size(); ++k) {
    const std::size_t n = open[k];
    solution other;  // nothing is known
    if (!meter.over()) {
      const auto left = static_cast<double>(open.size() - k);
      solve_options share = options;
      share.max_steps = options.max_steps / static_cast<double>(open.size());
      share.max_seconds =
          (options.max_seconds - std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count()) /
          left;
      std::vector<double> times(g.nodes[n].time.begin(), g.nodes[n].time.end());
      times[static_cast<std::size_t>(solved.choices[n])] = infinite_time;
      restricted.nodes[n].time = times;
      other = solve(restricted, share);
      restricted.nodes[n].time = g.nodes[n].time;
    }
    if (other.optimal && !other.feasible) continue;
    const double least = other.optimal ? other.time : std::max(other.bound, solved.bound);
    out[n] = alternative_at(other.feasible ? other.choices[n] : -1, least - solved.time, solved);
    out[n].proven = other.optimal;
  }
  return out;
}

}  // namespace detail

/// For each node what its next-best choice costs. Without a memory limit all come from one elimination, if its tables
/// fit the budget; else each is a `solve` within its share of the budget, of nodes that are `asked` for (none: all).
/// Throws `invalid_cost_graph`, and `bad_input` if `solved` is not a plan of the graph.
inline std::vector<alternative> alternatives(const cost_graph& g, const solution& solved,
                                             const solve_options& options = {}, const std::vector<bool>& asked = {}) {
  validate(g);
  if (!solved.feasible || evaluate(g, solved.choices).time == detail::infinite_time)
    throw bad_input("there is no plan to explain: the solution is not feasible");
  if (!g.memory_limit) {
    if (auto all = detail::alternatives_by_elimination(g, solved, options)) return *all;
  }
  return detail::alternatives_by_solving(g, solved, options, asked);
}

}  // namespace cfp
