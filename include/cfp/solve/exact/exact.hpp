#pragma once

// The exact solver: the best plan of a cost graph by eliminating one node at a time.
//
// Exact on any graph as long as the tables stay within the budget, which they do when few nodes are alive at
// any cut through the graph (chains, residual connections, a few long-range nodes); the number of nodes
// hardly matters.

#include <cstdint>
#include <limits>

#include <cfp/solve/cost_graph.hpp>
#include <cfp/solve/exact/dominance.hpp>
#include <cfp/solve/exact/run_elimination.hpp>
#include <cfp/solve/make_problem.hpp>
#include <cfp/solve/memory/budget.hpp>
#include <cfp/solve/memory/incumbent.hpp>
#include <cfp/solve/memory/least_memory.hpp>
#include <cfp/solve/memory/memory_search.hpp>
#include <cfp/solve/problem.hpp>
#include <cfp/solve/solution.hpp>

namespace cfp::inline v0_1 {

namespace detail {

/// The rest of `solve`, for when the fastest plan of all exceeds the limit. `bound`: no plan takes less time.
inline solution solve_within_limit(const problem& all, std::int64_t limit, const solve_options& options,
                                   incumbent& best, work_meter& meter, double bound) {
  const problem p = without_dominated(all, true);
  const least_memory_plan least = least_memory(p, options, meter);
  if (least.bound > limit) {
    solution answer = best.finish(infinite_time);
    if (least.bound < std::numeric_limits<std::int64_t>::max()) answer.least_memory = least.bound;
    return answer;
  }
  if (!least.plan.empty()) best.offer(p, least.plan);
  solution answer = best.finish(memory_search(p, limit, options, best, meter).run(bound));
  // Tables may have been split only where the least memory was sought; then all that is known is "more than
  // this".
  if (!answer.feasible && answer.optimal && !least.plan.empty()) answer.least_memory = limit + 1;
  return answer;
}

}  // namespace detail

/// The fastest plan of `graph` that keeps its memory limit; equal graphs get equal answers. Within the budget
/// of `options` the answer is optimal, or as near as their `gap` asks for, or proven infeasible; beyond it, `optimal`
/// is false and the answer holds the best plan found and a proven lower bound (see `solution`). Throws
/// `invalid_cost_graph`.
inline solution solve(const cost_graph& graph, const solve_options& options = {}) try {
  validate(graph);
  detail::leave_if(options.stop);
  detail::work_meter meter(options);
  const std::int64_t limit = graph.memory_limit.value_or(std::numeric_limits<std::int64_t>::max());
  detail::incumbent best(graph, limit);
  const detail::problem all = detail::make_problem(graph);

  const detail::problem p = detail::without_dominated(all, false);
  if (p.dead) return best.finish(detail::infinite_time);
  const auto e = detail::make_plan_finder(p, options.max_entries, meter.left() / 2, options);
  meter.spend(e->work());
  const double bound = e->run(0);
  if (bound == detail::infinite_time) return best.finish(bound);
  detail::plan_indices plan = e->plan();
  if (!e->exact()) detail::local_search(p).improve(plan, limit);
  const bool fits = best.offer(p, plan);
  if (fits && e->exact()) return best.finish(best.time());
  if (!graph.memory_limit) return best.finish(bound);
  return detail::solve_within_limit(all, limit, options, best, meter, bound);
} catch (const detail::stopped&) {  // before anything was known
  return detail::incumbent(graph, graph.memory_limit.value_or(std::numeric_limits<std::int64_t>::max()))
      .finish(-detail::infinite_time);
}

}  // namespace cfp
