#pragma once

// The exact solver: the best plan of a cost graph by eliminating one node at a time.
//
// Exact on any graph as long as the tables stay within the budget, which they do when few nodes are alive at
// any cut through the graph (chains, residual connections, a few long-range nodes); the number of nodes
// hardly matters.

#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

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

/// Solves one cost graph for one memory limit after another. What does not depend on the limit is done once, and what
/// was found for one helps with the next.
class limit_solver {
 public:
  /// The graph, of which the own limit plays no part, must outlive this. Throws `invalid_cost_graph`.
  explicit limit_solver(const cost_graph& graph) : graph_(graph) { validate(graph); }
  limit_solver(const limit_solver&) = delete;
  limit_solver& operator=(const limit_solver&) = delete;

  /// As the function `solve` does, within a limit; nothing: any plan will do.
  solution solve(std::optional<std::int64_t> within, const solve_options& options = {}) {
    const std::int64_t limit = within.value_or(std::numeric_limits<std::int64_t>::max());
    detail::incumbent best(graph_, limit, options.below);
    try {
      detail::leave_if(options.stop);
      detail::work_meter meter(options);
      if (!fastest_) find_fastest(options, meter);
      if (fastest_->bound >= options.below) return best.finish(fastest_->bound);
      const bool fits = best.offer(fastest_->choices);
      if (fits && fastest_->exact) return best.finish(best.time());
      if (!within) return best.finish(fastest_->bound);
      return in_memory(limit, options, best, meter);
    } catch (const detail::stopped&) {
      return best.finish(fastest_ ? fastest_->bound : -detail::infinite_time);
    }
  }

 private:
  struct fastest_plan {
    double bound;  // on the time of every plan
    std::vector<int> choices;
    bool exact;
  };

  void find_fastest(const solve_options& options, detail::work_meter& meter) {
    all_ = detail::make_problem(graph_);
    const detail::problem p = detail::without_dominated(all_, false);
    if (p.dead) {
      fastest_ = {detail::infinite_time, {}, true};
      return;
    }
    const auto e = detail::make_plan_finder(p, options.max_entries, meter.left() / 2, options);
    meter.spend(e->work());
    const double bound = e->run(0);
    detail::plan_indices plan = e->plan();
    if (!e->exact()) detail::local_search(p).improve(plan, std::numeric_limits<std::int64_t>::max());
    fastest_ = {bound, detail::original_choices(p, plan), e->exact()};
  }

  // For when the fastest plan of all exceeds the limit.
  solution in_memory(std::int64_t limit, const solve_options& options, detail::incumbent& best,
                     detail::work_meter& meter) {
    if (!runs_) {
      p_ = detail::without_dominated(all_, true);
      runs_.emplace(p_);
      runs_->add(fastest_->choices);
    }
    if (const auto none = find_one(limit, options, best, meter)) return *none;
    solution answer = best.finish(detail::memory_search(p_, limit, options, best, meter, &*runs_).run(fastest_->bound));
    if (answer.feasible) runs_->add(answer.choices);
    // Tables may have been split only where the least memory was sought; then all that is known is "more than
    // this".
    if (!answer.feasible && answer.bound == detail::infinite_time && least_ && !least_->plan.empty())
      answer.least_memory = limit + 1;
    return answer;
  }

  // Some plan within the limit: one that is known, one that a high price of memory brings about, else that of least
  // memory. The answer if there is none.
  std::optional<solution> find_one(std::int64_t limit, const solve_options& options, detail::incumbent& best,
                                   detail::work_meter& meter) {
    bool any = false;
    for (const std::vector<int>& choices : runs_->plans()) any = best.offer(choices) || any;
    if (any) return std::nullopt;
    if (!least_) {
      const double high = 100 * std::fabs(fastest_->bound) / static_cast<double>(std::max<std::int64_t>(limit, 1));
      if (const auto lean = runs_->at(high, {limit, 0, limit}, options, meter); !lean.empty() && best.offer(lean))
        return std::nullopt;
      least_ = detail::least_memory(p_, options, meter);
    }
    if (least_->bound > limit) {
      solution answer = best.finish(detail::infinite_time);
      if (least_->bound < std::numeric_limits<std::int64_t>::max()) answer.least_memory = least_->bound;
      return answer;
    }
    if (!least_->plan.empty()) {
      runs_->add(detail::original_choices(p_, least_->plan));
      best.offer(p_, least_->plan);
    }
    return std::nullopt;
  }

  const cost_graph& graph_;
  detail::problem all_, p_;  // all that can be chosen, and without what no limit asks for
  std::optional<fastest_plan> fastest_;
  std::optional<detail::least_memory_plan> least_;
  std::optional<detail::priced_runs> runs_;
};

/// The fastest plan of `graph` that keeps its memory limit; equal graphs get equal answers. Within the budget
/// of `options` the answer is optimal, or as near as their `gap` asks for, or there is proven to be none; beyond it,
/// `optimal` is false and the answer holds the best plan found and a proven lower bound (see `solution`). Throws
/// `invalid_cost_graph`.
inline solution solve(const cost_graph& graph, const solve_options& options = {}) {
  return limit_solver(graph).solve(graph.memory_limit, options);
}

}  // namespace cfp
