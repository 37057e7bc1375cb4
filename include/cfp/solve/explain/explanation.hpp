// Explanations of a solved plan in words: what the next-best choice of each node would cost, what more or less memory
// would gain and cost, and where another plan loses.
#pragma once

#include <cfp/solve/explain/alternative.hpp>
#include <cfp/solve/explain/comparison.hpp>
#include <cfp/solve/explain/memory_curve.hpp>
#include <cfp/solve/explain/relaxation.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

namespace cfp::inline v0_1 {

namespace detail {

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

/// What a choice of a node is called in texts; "choice 3" if nothing is given.
using choice_name = std::function<std::string(int node, int choice)>;

/// A line for each node with more than one choice.
inline std::string to_text(const cost_graph& g, const solution& solved, const std::vector<alternative>& others,
                           const choice_name& names = {}) {
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

/// A curve of memory, a line for each point: memory, time, how much slower than the first, and a bar of that length.
inline std::string to_text(const std::vector<solution>& curve) {
  std::string out;
  if (curve.empty()) return out;
  const double first = curve.front().time, longest = curve.back().time - first;
  for (const solution& s : curve) {
    const double more = s.time - first;
    char line[120];
    std::snprintf(line, sizeof line, "%14s  %10s  %-26s", detail::bytes_text(s.memory).c_str(),
                  detail::time_text(s.time).c_str(),
                  ((more > 0 ? detail::slower_text(more, first) : "") + (s.optimal ? "" : " at most")).c_str());
    out += line;
    if (longest > 0) out.append(static_cast<std::size_t>(std::lround(40 * more / longest)), '#');
    out.resize(out.find_last_not_of(' ') + 1);
    out += '\n';
  }
  return out;
}

/// What the named plan loses in all, what it breaks, and a line for each node that has part in it.
inline std::string to_text(const cost_graph& g, const comparison& c, const choice_name& names = {}) {
  const auto called = [&](int node, int choice) {
    return names ? names(node, choice) : "choice " + std::to_string(choice);
  };
  const auto chosen = [&](int node) {
    for (const node_difference& d : c.nodes)
      if (d.node == node) return called(node, d.named);
    return std::string();
  };
  std::string out;
  for (const int n : c.forbidden_nodes) out += detail::node_text(g, n) + ": " + chosen(n) + " is forbidden\n";
  for (const int e : c.forbidden_edges) {
    const cost_edge& edge = g.edges[static_cast<std::size_t>(e)];
    out += detail::node_text(g, edge.from) + ": " + chosen(edge.from) + " is forbidden with " + chosen(edge.to) +
           " of " + detail::node_text(g, edge.to) + '\n';
  }
  if (c.over_limit > 0) out += "breaks the memory limit by " + detail::bytes_text(c.over_limit) + '\n';
  if (c.loss < detail::infinite_time) {
    out += detail::time_text(c.named.time) + " against " + detail::time_text(c.best.time) + ": " +
           detail::slower_text(c.loss, c.best.time) + '\n';
  }
  for (const node_difference& d : c.nodes) {
    out += detail::time_text(d.time(), "%+.4g") + "  " + detail::node_text(g, d.node) + ": " + called(d.node, d.named);
    out += d.named == d.best ? " in both" : " instead of " + called(d.node, d.best);
    if (d.own != 0 && d.joint != 0)
      out += " (itself " + detail::time_text(d.own, "%+.4g") + ", with others " + detail::time_text(d.joint, "%+.4g") +
             ")";
    if (d.memory != 0) out += ", " + detail::bytes_text(std::abs(d.memory)) + (d.memory > 0 ? " more" : " less");
    out += '\n';
  }
  if (c.transient != 0)
    out +=
        "largest transient: " + detail::bytes_text(std::abs(c.transient)) + (c.transient > 0 ? " more\n" : " less\n");
  return out;
}

}  // namespace cfp
