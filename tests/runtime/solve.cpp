// The exact solver equals exhaustive search, with and without a memory limit; corrections price exactly what they name.
#include "../catch.hpp"
#include "../random_costs.hpp"

#include <cfp/solve/correction.hpp>
#include <cfp/solve/exact.hpp>
#include <cfp/solve/exhaustive.hpp>

using namespace cfp;

TEST_CASE("exact equals exhaustive on random graphs") {
  std::mt19937 random(1);
  int limited = 0, infeasible = 0;
  for (int r = 0; r < 10000; ++r) {
    const cost_graph g = random_costs(random);
    limited += g.memory_limit.has_value();
    const solution exact = solve(g), oracle = exhaustive(g);
    REQUIRE(exact.feasible == oracle.feasible);
    REQUIRE(exact.optimal);
    if (!oracle.feasible) {
      ++infeasible;
      continue;
    }
    REQUIRE(exact.time == Approx(oracle.time).epsilon(1e-9));
    const plan_cost cost = evaluate(g, exact.choices);
    REQUIRE(cost.time == Approx(exact.time));
    if (g.memory_limit) REQUIRE(cost.memory <= *g.memory_limit);
  }
  CHECK(limited > 4000);
  CHECK(infeasible > 100);
}

TEST_CASE("corrections add to exactly the joint choices they name") {
  std::mt19937 random(2);
  const auto below = [&](std::size_t n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  int changed = 0;
  for (int r = 0; r < 1000; ++r) {
    cost_graph g = random_costs(random);
    g.memory_limit.reset();
    std::vector<int> nodes;
    for (int n = 0; n < static_cast<int>(g.nodes.size()); ++n)
      if (below(3)) nodes.push_back(n);
    correction c(nodes, g);
    std::vector<std::pair<std::vector<int>, double>> named;
    const auto chosen = [&](const std::vector<int>& plan) {
      std::vector<int> out;
      for (int n : nodes) out.push_back(plan[static_cast<std::size_t>(n)]);
      return out;
    };
    for (int k = below(5); k > 0; --k) {
      std::vector<int> plan;
      for (const cost_node& n : g.nodes) plan.push_back(below(n.time.size()));
      const double time = below(21) - 10;
      if (!c.knows(plan)) named.emplace_back(chosen(plan), time);
      c.add(plan, time);
      REQUIRE(c.knows(plan));
    }
    // Every plan, by counting.
    double best = std::numeric_limits<double>::infinity();
    std::vector<int> plan(g.nodes.size(), 0);
    for (bool more = true; more;) {
      double time = evaluate(g, plan).time;
      for (const auto& [choices, extra] : named)
        if (choices == chosen(plan)) time += extra;
      best = std::min(best, time);
      more = false;
      for (std::size_t n = 0; n < plan.size() && !more; ++n) {
        more = static_cast<std::size_t>(++plan[n]) < g.nodes[n].time.size();
        if (!more) plan[n] = 0;
      }
    }
    const solution before = solve(g);
    c.write(g);
    const solution s = solve(g);
    REQUIRE(s.feasible == (best < std::numeric_limits<double>::infinity()));
    if (s.feasible) REQUIRE(s.time == Approx(best));
    changed += s.feasible && s.time != before.time;
  }
  CHECK(changed > 100);
}
