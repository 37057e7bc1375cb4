// The exact solver equals exhaustive search, with and without a memory limit.
#include "../catch.hpp"

#include <cfp/solve/exact.hpp>
#include <cfp/solve/exhaustive.hpp>

#include <random>

using namespace cfp;

TEST_CASE("exact equals exhaustive on random graphs") {
  std::mt19937 random(1);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  int limited = 0, infeasible = 0;
  for (int r = 0; r < 10000; ++r) {
    cost_graph g;
    const int nodes = 1 + below(6);
    for (int n = 0; n < nodes; ++n) {
      cost_node node;
      node.name = std::to_string(n);
      const int choices = 1 + below(4);
      for (int c = 0; c < choices; ++c) {
        node.time.push_back(below(8) == 0 ? std::numeric_limits<double>::infinity() : below(20));  // ties are common
        node.memory.push_back(below(30));
        node.transient.push_back(below(30));
      }
      g.nodes.push_back(node);
    }
    for (int a = 0; a < nodes; ++a)
      for (int b = a + 1; b < nodes; ++b) {
        const bool near = b == a + 1 || below(3) == 0;
        if (!near) continue;
        cost_edge e;
        e.from = below(2) ? a : b;
        e.to = e.from == a ? b : a;
        const std::size_t size = g.nodes[static_cast<std::size_t>(a)].time.size() * g.nodes[static_cast<std::size_t>(b)].time.size();
        for (std::size_t i = 0; i < size; ++i)
          e.time.push_back(below(10) == 0 ? std::numeric_limits<double>::infinity() : below(12));
        g.edges.push_back(e);
      }
    if (below(2)) g.memory_limit = below(40 * nodes);
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
