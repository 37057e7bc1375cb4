// Reasons: why a plan was found rather than another, as text.
#pragma once

#include <cfp/plan/narrowed.hpp>
#include <cfp/plan/realise.hpp>
#include <cfp/solve/explain/explanation.hpp>

#include <cstdio>
#include <cstring>

namespace cfp::inline v0_1 {

namespace detail {

// A line each for what loses most, one for all the rest, one for segments run whole (the nodes behind the decisions).
inline std::string losses(const comparison& c, const decision_graph& d, std::size_t most) {
  std::string out;
  const auto line = [&](double ms, const std::string& what) {
    out += "  " + time_text(ms, "%+8.4g") + "  " + what + '\n';
  };
  double segments = 0, rest = 0;
  std::size_t shown = 0, others = 0;
  for (const node_difference& n : c.nodes) {
    const auto at = static_cast<std::size_t>(n.node);
    if (at >= d.nodes.size()) {
      segments += n.time();
    } else if (n.time() > 0 && shown < most) {
      const auto called = [&](int choice) { return d.nodes[at].names[static_cast<std::size_t>(choice)]; };
      line(n.time(), decision_label(d.nodes[at]) + ": " + called(n.named) +
                         (n.named == n.best ? " in both" : " instead of " + called(n.best)));
      ++shown;
    } else {
      rest += n.time();
      ++others;
    }
  }
  if (others > 0) line(rest, std::to_string(others) + " other decisions");
  if (segments != 0) line(segments, "its segments run whole, beyond the sum of their parts");
  return out;
}

}  // namespace detail

/// What else every strategy of the first plan could be and what that costs, everything else at its best; what 10% more
/// memory would gain, if there is a limit, and what plans cost within others; where the other plans lose. Milliseconds
/// per step. `parts` and `corrected` are what `plan_search` calls so.
inline std::string reasons(cost_graph parts, cost_graph corrected, const decision_graph& d,
                           const std::vector<plan>& plans, std::optional<std::int64_t> memory_limit = {},
                           const solve_options& options = {}) {
  parts.memory_limit = memory_limit;
  const std::vector<int>& found = plans.front().choices;
  const solution best = solve(parts, options);
  char line[400];
  std::snprintf(line, sizeof line, "%-36s %-26s %-26s %s\n", "strategy", "choice", "next best",
                "ms more a step, by parts");
  std::string out = line;
  if (best.feasible) {
    const std::vector<alternative> others = alternatives(parts, best, options);
    for (std::size_t n = 0; n < d.nodes.size(); ++n) {
      const decision& at = d.nodes[n];
      if (at.kind != decision::strategy_of_part || at.choices() < 2) continue;
      const auto called = [&](int choice) {
        return choice < 0 ? std::string("none") : at.names[static_cast<std::size_t>(choice)];
      };
      const alternative& o = others[n];
      // The found plan is the best by segments run whole: by parts alone another may be.
      const bool agrees = found[n] == best.choices[n];
      const std::string price = !agrees                    ? "by parts alone the better"
                                : o.choice < 0 && o.proven ? ""
                                                           : (o.proven ? "" : "at least ") + detail::time_text(o.price);
      std::snprintf(line, sizeof line, "%-36s %-26s %-26s %s\n", at.label.c_str(), called(found[n]).c_str(),
                    called(agrees ? o.choice : best.choices[n]).c_str(), price.c_str());
      if (std::strlen(line) > 121)  // what is long goes over two lines
        std::snprintf(line, sizeof line, "%-36s %s\n%-50s %-39s %s\n", at.label.c_str(), called(found[n]).c_str(), "",
                      called(agrees ? o.choice : best.choices[n]).c_str(), price.c_str());
      out += line;
    }
    if (const auto more = relaxed(parts, best, 1.1, options)) out += '\n' + to_text(*more);
    if (const std::vector<solution> curve = memory_curve(parts, 12, options); curve.size() > 1)
      out += "\nmemory's worth: the fastest plan within so much, ms a step by parts\n" + to_text(curve);
  }
  const auto whole = [&](const plan& p) { return solve(fixed(corrected, p.choices), options).choices; };
  const std::vector<int> first = whole(plans.front());
  for (std::size_t p = 1; p < plans.size(); ++p) {
    const comparison c = compare(corrected, whole(plans[p]), first);
    out += "\nplan " + plans[p].name + ": " + detail::time_text(c.named.time) + " ms against " +
           detail::time_text(c.best.time) + ", " + detail::slower_text(c.loss, c.best.time) + '\n' +
           detail::losses(c, d, 8);
  }
  return out;
}

}  // namespace cfp
