// The oracle of what memory is worth.
#pragma once

#include <cfp/solve/cost_graph.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <vector>

// All plans of a graph of costs, as long as they are few: the least time for each memory that none needs less for.
inline std::map<std::int64_t, double> pareto(const cfp::cost_graph& costs) {
  std::map<std::int64_t, double> best;
  std::vector<int> choices(costs.nodes.size());
  for (bool more = true; more;) {
    const cfp::plan_cost c = evaluate(costs, choices);
    if (const auto [at, fresh] = best.try_emplace(c.memory, c.time); !fresh) at->second = std::min(at->second, c.time);
    more = false;
    for (std::size_t n = 0; n < choices.size() && !more; ++n) {
      more = ++choices[n] < static_cast<int>(costs.nodes[n].time.size());
      if (!more) choices[n] = 0;
    }
  }
  double least = std::numeric_limits<double>::infinity();
  for (auto at = best.begin(); at != best.end();) {
    if (at->second < least) least = (at++)->second;
    else at = best.erase(at);
  }
  return best;
}
