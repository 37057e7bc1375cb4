// The plan in which sums stay parts of sums as long as they may: what every operator that says it is linear is tried
// on.
#pragma once

#include <cfp/block/decision.hpp>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <random>
#include <vector>

namespace cfp::inline v0_1::detail {

/// Functors that take operands as parts of sums, over all axes: what their rule does not prove.
inline long taken_in_parts(const graph& g, const decision& d, std::size_t choice) {
  long n = 0;
  for (std::size_t i = 0; i < d.operations.size(); ++i) {
    const operation& o = g.at(d.operations[i]);
    if (o.when != phase::forward || o.op->unit) continue;
    for (const signed char f : d.assigned[choice][i].factor) n += f == assignment::partial;
  }
  return n;
}

/// Tensors that are left, or kept, as parts of sums.
inline long left_in_parts(const graph& g, const decision& d, std::size_t choice) {
  long n = 0;
  const auto count = [&](const partition& p) {
    for (const auto& sum : p.partial) n += sum.owed;
  };
  if (d.kind == decision::forms_of_tensor)
    for (const partition& p : d.forms[choice]) count(p);
  for (std::size_t i = 0; i < d.operations.size(); ++i) {
    const operation& o = g.at(d.operations[i]);
    for (int k = 0; k < o.results.size() && o.when == phase::forward; ++k)
      count(result_partition(o.r, k, d.assigned[choice][i]));
  }
  return n;
}

/// Its choices, equal ones drawn at random; nothing where no functor takes parts of sums.
inline std::optional<std::vector<int>> sums_in_parts(const graph& g, const decision_graph& d, std::mt19937 random) {
  std::vector<int> out;
  bool any = false;
  for (const decision& n : d.nodes) {
    const auto size = [&](std::size_t c) { return std::pair(taken_in_parts(g, n, c), left_in_parts(g, n, c)); };
    std::vector<std::size_t> best;
    for (std::size_t c = 0; c < n.choices(); ++c) {
      if (!best.empty() && size(c) > size(best[0])) best.clear();
      if (best.empty() || size(c) == size(best[0])) best.push_back(c);
    }
    any = any || size(best[0]).first > 0;
    out.push_back(static_cast<int>(best[random() % best.size()]));
  }
  return any ? std::optional(out) : std::nullopt;
}

}  // namespace cfp
