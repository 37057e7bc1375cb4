#pragma once

// The least memory that any plan of finite time needs: first the sum alone, then the sum plus the largest
// transient.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <queue>
#include <tuple>
#include <utility>
#include <vector>

#include <cfp/solve/exact/run_elimination.hpp>
#include <cfp/solve/memory/budget.hpp>
#include <cfp/solve/problem.hpp>

namespace cfp::inline v0_1::detail {

/// `p` with every finite time replaced by 0. Most edges vanish: only forbidden pairs still tie nodes
/// together.
inline problem memory_form(const problem& p) {
  problem result;
  result.nodes = p.nodes;
  result.base_memory = p.base_memory;
  result.dead = p.dead;
  for (problem_node& node : result.nodes) {
    for (double& time : node.time) time = time < infinite_time ? 0 : infinite_time;
  }
  std::map<const void*, shared_table> made;  // of tables that forbid something
  for (const problem_edge& edge : p.edges) {
    const auto [at, fresh] = made.try_emplace(edge.time.id());
    if (fresh && std::find(edge.time.begin(), edge.time.end(), infinite_time) != edge.time.end()) {
      std::vector<double> forbids = edge.time;
      for (double& time : forbids) time = time < infinite_time ? 0 : infinite_time;
      at->second = std::move(forbids);
    }
    if (!at->second.empty()) result.edges.push_back({edge.from, edge.to, at->second});
  }
  return result;
}

/// The least sum of memory, base included, and a plan for it; if not `exact`, a lower bound and some plan.
struct least_sum_plan {
  std::int64_t sum = 0;
  plan_indices plan;
  bool exact = true;
};

/// Of a `memory_form`. Nothing if every plan is forbidden.
inline std::optional<least_sum_plan> least_sum(const problem& p, const solve_options& options, work_meter& meter) {
  if (p.dead) return std::nullopt;
  const auto e = make_plan_finder(p, options.max_entries, meter.left() / 4, options);
  meter.spend(e->work());
  const double least = e->run(1);  // exact in double, see max_total_memory
  if (least == infinite_time) return std::nullopt;
  return least_sum_plan{p.base_memory + static_cast<std::int64_t>(least), e->plan(), e->exact()};
}

/// The choices whose transient is at most `most`, transients below `least` raised to it.
inline problem with_transients_in(const problem& p, std::int64_t least, std::int64_t most) {
  choice_mask keep = keep_all(p);
  for (std::size_t n = 0; n < p.nodes.size(); ++n) {
    for (std::size_t c = 0; c < p.nodes[n].size(); ++c) keep[n][c] = p.nodes[n].transient[c] <= most;
  }
  problem result = keep_only(p, keep);
  for (problem_node& node : result.nodes) {
    for (std::int64_t& bytes : node.transient) bytes = std::max(bytes, least);
  }
  return result;
}

/// All values that the largest transient of a plan can have, ascending.
inline std::vector<std::int64_t> transient_levels(const problem& p) {
  std::int64_t floor = 0;
  std::vector<std::int64_t> levels;
  for (const problem_node& node : p.nodes) {
    if (node.size() == 0) continue;
    floor = std::max(floor, *std::min_element(node.transient.begin(), node.transient.end()));
    levels.insert(levels.end(), node.transient.begin(), node.transient.end());
  }
  levels.push_back(floor);
  std::sort(levels.begin(), levels.end());
  levels.erase(std::unique(levels.begin(), levels.end()), levels.end());
  levels.erase(levels.begin(), std::lower_bound(levels.begin(), levels.end(), floor));
  return levels;
}

/// `plan` of a problem made from `p` by dropping choices, in the numbering of `p`.
inline plan_indices plan_in(const problem& p, const problem& narrowed, plan_indices plan) {
  for (std::size_t n = 0; n < plan.size(); ++n) {
    const std::vector<int>& all = p.nodes[n].original;
    const int original = narrowed.nodes[n].original[plan[n]];
    plan[n] = static_cast<std::size_t>(std::lower_bound(all.begin(), all.end(), original) - all.begin());
  }
  return plan;
}

/// The least sum plus largest transient. `bound` is proven; `plan` (empty if none was found) needs `memory`,
/// which equals the bound unless the budget ran out.
struct least_memory_plan {
  std::int64_t bound = std::numeric_limits<std::int64_t>::max();
  std::int64_t memory = std::numeric_limits<std::int64_t>::max();
  plan_indices plan;
};

/// Searches over bands of transient levels, least bound first: with the largest transient in a band, memory
/// is at least the band's lower end plus the least sum of choices up to its upper end. A bound left at the
/// largest integer means that every plan is forbidden.
inline least_memory_plan least_memory(const problem& with_times, const solve_options& options, work_meter& meter) {
  least_memory_plan best;
  if (with_times.dead) return best;
  const problem p = memory_form(with_times);
  const std::vector<std::int64_t> levels = transient_levels(p);
  using band = std::tuple<std::int64_t, std::size_t, std::size_t>;  // bound on memory, first and last level
  std::priority_queue<band, std::vector<band>, std::greater<>> bands;
  bands.emplace(0, 0, levels.size() - 1);
  for (; !bands.empty() && std::get<0>(bands.top()) < best.memory; meter.spend(1000)) {
    const auto [parent_bound, low, high] = bands.top();
    if (meter.over() && (!best.plan.empty() || parent_bound > 0)) break;
    bands.pop();
    const problem narrowed = with_transients_in(p, levels[low], levels[high]);
    std::optional<least_sum_plan> found;
    try {
      found = least_sum(narrowed, options, meter);
    } catch (const stopped&) {
      best.bound = std::min(best.bound, parent_bound);
      break;
    }
    if (!found) continue;
    const std::int64_t bound = std::max(parent_bound, found->sum + levels[low]);
    const plan_indices plan = plan_in(p, narrowed, found->plan);
    const plan_sums cost = sums(p, plan);
    if (cost.time < infinite_time && cost.memory + cost.transient < best.memory) {
      best.memory = cost.memory + cost.transient;
      best.plan = plan;
    }
    if (bound >= best.memory) continue;
    if (cost.transient <= levels[low]) {  // the plan is not what the bound promised: tables were split
      best.bound = std::min(best.bound, bound);
      continue;
    }
    // The plan's own transient divides the band: below it the plan is excluded, from it on the bound rises.
    const auto middle = std::lower_bound(levels.begin(), levels.end(), cost.transient) - levels.begin();
    bands.emplace(bound, low, static_cast<std::size_t>(middle) - 1);
    bands.emplace(bound, static_cast<std::size_t>(middle), high);
  }
  best.bound = std::min(best.bound, best.memory);
  if (!bands.empty()) best.bound = std::min(best.bound, std::get<0>(bands.top()));
  return best;
}

}  // namespace cfp::detail
