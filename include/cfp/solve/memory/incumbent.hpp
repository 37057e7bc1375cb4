#pragma once

// The best plan found so far, and a quick way to improve a plan one node at a time.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include <cfp/solve/cost_graph.hpp>
#include <cfp/solve/other/greedy_plan.hpp>
#include <cfp/solve/problem.hpp>
#include <cfp/solve/solution.hpp>

namespace cfp::inline v0_1::detail {

/// Keeps the fastest plan offered that the cost graph's own figures allow, of those that take less than a time.
class incumbent {
 public:
  incumbent(const cost_graph& graph, std::int64_t limit, double below = infinite_time)
      : graph_(graph), limit_(limit), below_(below) {}

  /// Whether the plan is finite and keeps the memory limit; if so it is kept if it is the fastest yet.
  bool offer(const problem& p, const plan_indices& plan) { return offer(original_choices(p, plan)); }

  bool offer(const std::vector<int>& choices) {
    const plan_cost cost = evaluate(graph_, choices);
    if (cost.time == infinite_time || cost.memory > limit_) return false;
    if (cost.time < time()) {
      best_.feasible = true;
      best_.choices = choices;
      best_.time = cost.time;
      best_.memory = cost.memory;
    }
    return true;
  }

  [[nodiscard]] bool found() const { return best_.feasible; }
  /// What plans to come must be faster than.
  [[nodiscard]] double time() const { return best_.feasible ? best_.time : below_; }

  /// The largest transient of the best plan; 0 if there is none.
  [[nodiscard]] std::int64_t transient() const {
    std::int64_t most = 0;
    for (std::size_t n = 0; n < best_.choices.size(); ++n) {
      const std::vector<std::int64_t>& of = graph_.nodes[n].transient;
      if (!of.empty()) most = std::max(most, of[static_cast<std::size_t>(best_.choices[n])]);
    }
    return most;
  }

  /// Plans are told apart down to this.
  [[nodiscard]] double resolution() const { return best_.feasible ? 1e-10 * std::fabs(best_.time) : 0.0; }

  /// The answer, given a proven lower bound on the time of every plan. Where there may be a plan but none was found,
  /// one is made without search if that can be done.
  [[nodiscard]] solution finish(double bound) {
    if (!best_.feasible && bound < below_) {
      if (const auto plan = greedy_plan(graph_)) offer(*plan);
    }
    solution answer = best_;
    answer.optimal = bound >= time() - resolution();
    answer.bound = answer.optimal && best_.feasible ? best_.time : bound;
    return answer;
  }

 private:
  const cost_graph& graph_;
  std::int64_t limit_;
  double below_;
  solution best_;
};

/// Changes one node's choice at a time as long as that makes the plan faster, at a price of memory, and keeps (sum +
/// largest transient) within `limit` bytes; the largest transient is never lowered, which errs on the safe side.
class local_search {
 public:
  explicit local_search(const problem& p) : p_(p), incident_(incident_edges(p)) {}

  void improve(plan_indices& plan, std::int64_t limit, double memory_price = 0) {
    plan_sums now = sums(p_, plan);
    if (now.memory + now.transient > limit) return;
    bool changed = true;
    for (int sweep = 0; changed && sweep < max_sweeps; ++sweep) {
      changed = false;
      for (std::size_t n = 0; n < plan.size(); ++n) {
        const problem_node& node = p_.nodes[n];
        price(n, plan, memory_price);
        std::size_t best = plan[n];
        const std::int64_t others = now.memory - node.memory[best];
        for (std::size_t c = 0; c < node.size(); ++c) {
          const std::int64_t memory = others + node.memory[c] + std::max(now.transient, node.transient[c]);
          if (cost_[c] < cost_[best] && memory <= limit) best = c;
        }
        if (best == plan[n]) continue;
        plan[n] = best;
        now.memory = others + node.memory[best];
        now.transient = std::max(now.transient, node.transient[best]);
        changed = true;
      }
    }
  }

 private:
  static constexpr int max_sweeps = 20;

  /// What each choice of a node takes, its edges included, if the other nodes keep theirs.
  void price(std::size_t n, const plan_indices& plan, double memory_price) {
    cost_ = p_.nodes[n].time;
    for (std::size_t c = 0; c < cost_.size(); ++c)
      cost_[c] += memory_price * static_cast<double>(p_.nodes[n].memory[c]);
    for (const std::size_t e : incident_[n]) {
      const problem_edge& edge = p_.edges[e];
      const std::size_t columns = p_.nodes[edge.to].size();
      for (std::size_t c = 0; c < cost_.size(); ++c) {
        cost_[c] += edge.from == n ? edge.time[c * columns + plan[edge.to]] : edge.time[plan[edge.from] * columns + c];
      }
    }
  }

  const problem& p_;
  std::vector<std::vector<std::size_t>> incident_;
  std::vector<double> cost_;
};

}  // namespace cfp::detail
