// Explanations of a solved plan: what the next-best choice of each node would cost, what more memory would gain, and where another
// plan loses.
#pragma once

#include <cfp/solve/exact.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <iterator>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace cfp::inline v0_1 {

/// The best plan, within the memory limit if there is one, that takes another choice at one node.
struct alternative {
  int choice = -1;                                         ///< which one it takes there; -1 if no such plan is known
  double time = std::numeric_limits<double>::infinity();   ///< of that plan; +infinity if there is none
  double price = std::numeric_limits<double>::infinity();  ///< `time` less that of the solved plan
  bool proven = true;                                      ///< else `time` and `price` are lower bounds, `choice` is of the best plan found
};

/// What a larger memory limit would gain. A time is +infinity where no plan fits (or none was found, if not proven).
struct relaxation {
  std::int64_t limit_now, limit_then;
  double now, then;  ///< the times of the best plans within each
  double gain;       ///< now - then; 0 if there is no plan either way
  bool proven;       ///< both times are optimal
};

/// What one node adds to the difference between two plans.
struct node_difference {
  int node;
  int named, best;      ///< the choices
  double own;           ///< of the node's times
  double joint;         ///< of its edges' times, of each edge half (the other half is the other end's)
  std::int64_t memory;  ///< of its memory; transients apart

  [[nodiscard]] double time() const { return own + joint; }
};

/// Why a named plan loses against the best one. All differences are the named plan's figure less the best plan's.
struct comparison {
  plan_cost named, best;
  double loss = 0;                     ///< the times of all `nodes`, summed in their order; +infinity if the named plan is forbidden
  std::vector<node_difference> nodes;  ///< where choices differ or an edge does; largest loss first
  std::int64_t transient = 0;          ///< of the largest transients: with the memory of all `nodes` the difference in memory
  std::int64_t over_limit = 0;         ///< by how many bytes the named plan breaks the limit
  std::vector<int> forbidden_nodes;    ///< whose choice in the named plan is forbidden
  std::vector<int> forbidden_edges;    ///< whose pair of choices in the named plan is forbidden
};

namespace detail {

inline alternative alternative_at(int choice, double price, const solution& solved) {
  if (solved.optimal) price = std::max(price, 0.0);  // rounding
  return {choice, solved.time + price, price, true};
}

/// For all nodes at once, if no table needs splitting. For a graph without a memory limit. Dominance would drop what is asked for.
inline std::optional<std::vector<alternative>> alternatives_by_elimination(const cost_graph& g, const solution& solved,
                                                                           const solve_options& options) try {
  const problem p = make_problem(g);
  elimination e(p, options.max_entries / 2, work_meter(options).left() / 4, options.stop);
  if (!e.exact()) return std::nullopt;
  e.run(0);
  e.run_through();
  const double optimum = solved.optimal ? e.total() : solved.time;
  std::vector<alternative> out(g.nodes.size());
  for (std::size_t n = 0; n < out.size(); ++n) {
    std::size_t next = p.nodes[n].size();
    for (std::size_t c = 0; c < p.nodes[n].size(); ++c) {
      if (p.nodes[n].original[c] == solved.choices[n] || e.through_choice(n, c) == infinite_time) continue;
      if (next == p.nodes[n].size() || e.through_choice(n, c) < e.through_choice(n, next)) next = c;
    }
    if (next < p.nodes[n].size()) out[n] = alternative_at(p.nodes[n].original[next], e.through_choice(n, next) - optimum, solved);
  }
  return out;
} catch (const stopped&) {
  return std::nullopt;
}

/// By solving once more for every node, its choice forbidden, each time within an equal share of the budget that is left.
inline std::vector<alternative> alternatives_by_solving(const cost_graph& g, const solution& solved, const solve_options& options) {
  std::vector<alternative> out(g.nodes.size());
  std::vector<std::size_t> open;  // nodes with another choice
  for (std::size_t n = 0; n < out.size(); ++n) {
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
      share.max_seconds = (options.max_seconds - std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count()) / left;
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

inline std::string node_text(const cost_graph& g, int node) {
  const std::string& name = g.nodes[static_cast<std::size_t>(node)].name;
  return name.empty() ? "node " + std::to_string(node) : name;
}

inline std::string time_text(double time, const char* format = "%.4g") {
  char out[32];
  std::snprintf(out, sizeof out, format, time + 0.0);  // not -0
  return out;
}

/// "1.50 MiB", from 10 KiB on.
inline std::string bytes_text(std::int64_t bytes) {
  constexpr const char* units[] = {"KiB", "MiB", "GiB", "TiB", "PiB"};
  auto size = static_cast<double>(bytes) / 1024;
  if (std::fabs(size) < 10) return std::to_string(bytes) + " bytes";
  std::size_t unit = 0;
  for (; std::fabs(size) >= 1024 && unit + 1 < std::size(units); ++unit) size /= 1024;
  char out[48];
  std::snprintf(out, sizeof out, "%.2f %s", size, units[unit]);
  return out;
}

/// " (12.3%)" of a time; nothing where that says nothing.
inline std::string part_text(double time, double of) {
  if (!(of > 0) || !std::isfinite(time) || !std::isfinite(of)) return "";
  return " (" + time_text(100 * time / of, "%.1f") + "%)";
}

/// "1.5 (12.5%) slower", "as fast" where solvers do not tell times apart.
inline std::string slower_text(double by, double than) {
  if (std::fabs(by) <= 1e-10 * std::fabs(than)) return "as fast";
  return time_text(std::fabs(by)) + part_text(std::fabs(by), than) + (by > 0 ? " slower" : " faster");
}

}  // namespace detail

/// For each node what its next-best choice costs. Without a memory limit all come from one elimination, if its tables fit the
/// budget; else each is a `solve` within its share of the budget. Throws `invalid_cost_graph`, and `std::invalid_argument` if
/// `solved` is not a plan of the graph.
inline std::vector<alternative> alternatives(const cost_graph& g, const solution& solved, const solve_options& options = {}) {
  validate(g);
  if (!solved.feasible || evaluate(g, solved.choices).time == detail::infinite_time)
    throw std::invalid_argument("there is no plan to explain: the solution is not feasible");
  if (!g.memory_limit) {
    if (auto all = detail::alternatives_by_elimination(g, solved, options)) return *all;
  }
  return detail::alternatives_by_solving(g, solved, options);
}

/// What a memory limit larger by `factor` (rounded down to bytes) would gain; nothing if there is no limit. Throws
/// `invalid_cost_graph`, and `std::invalid_argument` if the factor is less than 1.
inline std::optional<relaxation> relaxed(const cost_graph& g, const solution& solved, double factor = 1.1, const solve_options& options = {}) {
  validate(g);
  if (!(factor >= 1) || factor == detail::infinite_time)
    throw std::invalid_argument("the factor of a relaxed memory limit must be a finite number of at least 1, got: " + std::to_string(factor));
  if (!g.memory_limit) return std::nullopt;
  cost_graph wider = g;
  if (*g.memory_limit > 0 && *g.memory_limit < max_total_memory)
    wider.memory_limit = static_cast<std::int64_t>(std::min(static_cast<double>(*g.memory_limit) * factor, static_cast<double>(max_total_memory)));
  const solution other = solve(wider, options);
  relaxation out{*g.memory_limit, *wider.memory_limit, solved.time, std::min(other.time, solved.time), 0, solved.optimal && other.optimal};
  if (out.then < out.now) out.gain = out.now - out.then;
  return out;
}

/// Where a named plan loses against the best one. Throws `invalid_cost_graph`, and `std::invalid_argument` if a plan does not fit
/// the graph or the best one is forbidden.
inline comparison compare(const cost_graph& g, const std::vector<int>& named, const std::vector<int>& best) {
  validate(g);
  comparison out;
  out.named = evaluate(g, named);
  out.best = evaluate(g, best);
  if (out.best.time == detail::infinite_time) throw std::invalid_argument("the plan to compare with must not be forbidden");
  if (g.memory_limit) out.over_limit = std::max<std::int64_t>(0, out.named.memory - *g.memory_limit);
  std::vector<node_difference> all;
  std::vector<char> touched(g.nodes.size(), 0);
  out.transient = out.named.memory - out.best.memory;
  for (std::size_t n = 0; n < g.nodes.size(); ++n) {
    const cost_node& node = g.nodes[n];
    const auto a = static_cast<std::size_t>(named[n]), b = static_cast<std::size_t>(best[n]);
    all.push_back({static_cast<int>(n), named[n], best[n], node.time[a] - node.time[b], 0, node.memory[a] - node.memory[b]});
    touched[n] = a != b;
    out.transient -= all.back().memory;
    if (node.time[a] == detail::infinite_time) out.forbidden_nodes.push_back(static_cast<int>(n));
  }
  for (std::size_t e = 0; e < g.edges.size(); ++e) {
    const cost_edge& edge = g.edges[e];
    const auto from = static_cast<std::size_t>(edge.from), to = static_cast<std::size_t>(edge.to);
    const auto time = [&](const std::vector<int>& plan) {
      return edge.time[static_cast<std::size_t>(plan[from]) * g.nodes[to].time.size() + static_cast<std::size_t>(plan[to])];
    };
    const double difference = time(named) - time(best);
    if (difference == detail::infinite_time) out.forbidden_edges.push_back(static_cast<int>(e));
    for (const std::size_t end : {from, to}) {
      all[end].joint += difference / 2;
      if (difference != 0) touched[end] = 1;
    }
  }
  for (const node_difference& d : all)
    if (touched[static_cast<std::size_t>(d.node)]) out.nodes.push_back(d);
  std::stable_sort(out.nodes.begin(), out.nodes.end(), [](const node_difference& a, const node_difference& b) { return a.time() > b.time(); });
  for (const node_difference& d : out.nodes) out.loss += d.time();
  return out;
}

/// What a choice of a node is called in texts; "choice 3" if nothing is given.
using choice_name = std::function<std::string(int node, int choice)>;

/// A line for each node with more than one choice.
inline std::string to_text(const cost_graph& g, const solution& solved, const std::vector<alternative>& others, const choice_name& names = {}) {
  std::string out;
  for (std::size_t k = 0; k < others.size(); ++k) {
    if (g.nodes[k].time.size() < 2) continue;
    const int n = static_cast<int>(k);
    const auto called = [&](int choice) { return names ? names(n, choice) : "choice " + std::to_string(choice); };
    const alternative& o = others[k];
    out += detail::node_text(g, n) + ": " + called(solved.choices[k]) + "; ";
    if (!o.proven) {
      if (o.price > 0) out += "any other costs at least " + detail::time_text(o.price) + " more";
      else out += "what others cost is not known";
      if (o.choice >= 0) out += ", the best found is " + called(o.choice);
    } else if (o.choice < 0) {
      out += g.memory_limit ? "no other is possible within the memory limit" : "no other is possible";
    } else {
      out += "next best is " + called(o.choice) + ", " + detail::slower_text(o.price, solved.time);
    }
    out += '\n';
  }
  return out;
}

/// One line.
inline std::string to_text(const relaxation& r) {
  const auto within = [&](std::int64_t limit, double time) {
    const char* none = r.proven ? "no plan" : "no plan found";
    return detail::bytes_text(limit) + ": " + (time < detail::infinite_time ? detail::time_text(time) : none);
  };
  std::string out = "memory limit " + within(r.limit_now, r.now) + "; " + within(r.limit_then, r.then);
  if (r.now < detail::infinite_time) out += ", " + detail::slower_text(-r.gain, r.now);
  return out + (r.proven ? "\n" : " (not proven)\n");
}

/// What the named plan loses in all, what it breaks, and a line for each node that has part in it.
inline std::string to_text(const cost_graph& g, const comparison& c, const choice_name& names = {}) {
  const auto called = [&](int node, int choice) { return names ? names(node, choice) : "choice " + std::to_string(choice); };
  const auto chosen = [&](int node) {
    for (const node_difference& d : c.nodes)
      if (d.node == node) return called(node, d.named);
    return std::string();
  };
  std::string out;
  for (const int n : c.forbidden_nodes) out += detail::node_text(g, n) + ": " + chosen(n) + " is forbidden\n";
  for (const int e : c.forbidden_edges) {
    const cost_edge& edge = g.edges[static_cast<std::size_t>(e)];
    out += detail::node_text(g, edge.from) + ": " + chosen(edge.from) + " is forbidden with " + chosen(edge.to) + " of " +
           detail::node_text(g, edge.to) + '\n';
  }
  if (c.over_limit > 0) out += "breaks the memory limit by " + detail::bytes_text(c.over_limit) + '\n';
  if (c.loss < detail::infinite_time) {
    out += detail::time_text(c.named.time) + " against " + detail::time_text(c.best.time) + ": " + detail::slower_text(c.loss, c.best.time) + '\n';
  }
  for (const node_difference& d : c.nodes) {
    out += detail::time_text(d.time(), "%+.4g") + "  " + detail::node_text(g, d.node) + ": " + called(d.node, d.named);
    out += d.named == d.best ? " in both" : " instead of " + called(d.node, d.best);
    if (d.own != 0 && d.joint != 0)
      out += " (itself " + detail::time_text(d.own, "%+.4g") + ", with others " + detail::time_text(d.joint, "%+.4g") + ")";
    if (d.memory != 0) out += ", " + detail::bytes_text(std::abs(d.memory)) + (d.memory > 0 ? " more" : " less");
    out += '\n';
  }
  if (c.transient != 0) out += "largest transient: " + detail::bytes_text(std::abs(c.transient)) + (c.transient > 0 ? " more\n" : " less\n");
  return out;
}

}  // namespace cfp
