// Explanations against exhaustive search: next-best choices, a larger memory limit, and where a named plan loses.
#include "../catch.hpp"
#include "../pareto.hpp"
#include "../random_costs.hpp"

#include <cfp/solve/explain/explanation.hpp>
#include <cfp/solve/other/exhaustive.hpp>

#include <algorithm>
#include <map>

namespace explanation_tests {

using namespace cfp;

namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

// The graph with one node kept to, or from, one choice.
cost_graph restricted(cost_graph g, std::size_t node, int choice, bool to_it) {
  std::vector<double> times = g.nodes[node].time;
  for (std::size_t c = 0; c < times.size(); ++c)
    if ((static_cast<int>(c) == choice) != to_it) times[c] = infinite;
  g.nodes[node].time = times;
  return g;
}

cost_graph with_digits(cost_graph g, std::mt19937& random) {  // which rounding can reach
  std::uniform_real_distribution<double> unit(0, 1);
  const auto varied = [&](std::vector<double> times) {
    for (double& t : times) t = (t + unit(random) - 3) / 7;
    return times;
  };
  for (cost_node& n : g.nodes) n.time = varied(n.time);
  for (cost_edge& e : g.edges) e.time = varied(e.time);
  return g;
}

std::vector<int> any_plan(const cost_graph& g, std::mt19937& random) {
  std::vector<int> out;
  for (const cost_node& n : g.nodes) out.push_back(static_cast<int>(random() % n.time.size()));
  return out;
}

struct seen {
  int some = 0, none = 0, limited = 0, bounds = 0;
};

// Checks every alternative of a solved graph.
void check_alternatives(const cost_graph& g, const solution& s, const std::vector<alternative>& others, seen& count) {
  REQUIRE(others.size() == g.nodes.size());
  for (std::size_t n = 0; n < others.size(); ++n) {
    const alternative& o = others[n];
    const solution oracle = exhaustive(restricted(g, n, s.choices[n], false));
    count.limited += g.memory_limit.has_value();
    if (!o.proven) {
      ++count.bounds;
      REQUIRE(o.time <= oracle.time + 1e-9);
      REQUIRE(o.choice != s.choices[n]);
      if (s.optimal) REQUIRE(o.price >= 0);
      continue;
    }
    REQUIRE((o.choice >= 0) == oracle.feasible);
    if (!oracle.feasible) {
      ++count.none;
      REQUIRE(o.time == infinite);
      REQUIRE(o.price == infinite);
      continue;
    }
    ++count.some;
    REQUIRE(o.choice != s.choices[n]);
    REQUIRE(o.time == Approx(oracle.time).epsilon(1e-9).margin(1e-9));
    REQUIRE(o.price == Approx(oracle.time - s.time).margin(1e-8));
    REQUIRE(o.price >= 0);
    REQUIRE(exhaustive(restricted(g, n, o.choice, true)).time == Approx(oracle.time).epsilon(1e-9).margin(1e-9));
  }
}

// A chain of three: what each costs alone, and 1 between unequal neighbours.
cost_graph three() {
  cost_graph g;
  for (const char* name : {"read", "", "write"}) {
    cost_node n;
    n.name = name;
    n.time = std::vector<double>{1, 3};
    n.memory = {100, 40};
    g.nodes.push_back(n);
  }
  for (int n = 1; n < 3; ++n) g.edges.push_back({n - 1, n, std::vector<double>{0, 1, 1, 0}});
  return g;
}

}  // namespace

TEST_CASE("the next-best choice of every node equals exhaustive search") {
  std::mt19937 random(1);
  seen count;
  for (int r = 0; r < 3000; ++r) {
    cost_graph g = random_costs(random);
    if (r % 3 == 0) g = with_digits(std::move(g), random);
    const solution s = solve(g);
    if (s.feasible) check_alternatives(g, s, alternatives(g, s), count);
  }
  CHECK(count.some > 3000);
  CHECK(count.none > 500);
  CHECK(count.limited > 1500);
  CHECK(count.bounds == 0);
}

TEST_CASE("what does not fit the budget is a lower bound, and says so") {
  std::mt19937 random(2);
  seen count;
  for (int r = 0; r < 2000; ++r) {
    const cost_graph g = random_costs(random);
    const solution s = exhaustive(g);
    if (!s.feasible) continue;
    solve_options little;
    little.max_entries = 1 + static_cast<double>(random() % 20);
    if (r % 2) little.max_steps = static_cast<double>(random() % 300);
    check_alternatives(g, s, alternatives(g, s, little), count);
  }
  CHECK(count.bounds > 100);
  CHECK(count.some > 1000);
}

TEST_CASE("alternatives to a plan that is not the best can be faster") {
  cost_graph g = three();
  solution s = exhaustive(g);
  s.choices = {1, 0, 0};
  s.time = evaluate(g, s.choices).time;
  s.optimal = false;
  s.bound = -infinite;
  for (const bool limited : {false, true}) {
    if (limited) g.memory_limit = 1000;
    const auto others = alternatives(g, s);
    CHECK(others[0].price == -3);
    CHECK(others[0].time == 3);
    CHECK(others[0].choice == 0);
    CHECK(others[1].time == 7);
    CHECK(others[1].price == 1);
  }
}

TEST_CASE("what a larger memory limit gains equals exhaustive search") {
  std::mt19937 random(3);
  int gains = 0, none = 0, opened = 0;
  for (int r = 0; r < 4000; ++r) {
    cost_graph g = random_costs(random);
    const double factor = 1 + static_cast<double>(random() % 20) / 10;
    const solution s = solve(g);
    const auto more = relaxed(g, s, factor);
    REQUIRE(more.has_value() == g.memory_limit.has_value());
    if (!more) continue;
    REQUIRE(more->limit_now == *g.memory_limit);
    REQUIRE(more->limit_then == static_cast<std::int64_t>(static_cast<double>(*g.memory_limit) * factor));
    g.memory_limit = more->limit_then;
    const solution oracle = exhaustive(g);
    REQUIRE(more->proven);
    REQUIRE(more->now == s.time);
    if (oracle.feasible) REQUIRE(more->then == Approx(oracle.time).epsilon(1e-9));
    else REQUIRE(more->then == infinite);
    if (more->then == infinite) REQUIRE(more->gain == 0);
    else REQUIRE(more->gain == more->now - more->then);
    gains += more->gain > 0;
    none += more->gain == 0;
    opened += more->gain == infinite;
  }
  CHECK(gains > 300);
  CHECK(none > 400);
  CHECK(opened > 20);
  cost_graph g = three();
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  for (const std::int64_t limit : {std::int64_t{-10}, std::int64_t{0}, max_total_memory - 1, max_total_memory, most}) {
    g.memory_limit = limit;
    const auto more = relaxed(g, solve(g), 1e18);
    CHECK(more->limit_then == std::max(limit, limit > 0 ? max_total_memory : limit));
    CHECK(more->gain == 0);
  }
}

TEST_CASE("a curve of memory is all plans that none beats in time and memory") {
  std::mt19937 random(6);
  std::size_t most = 0, long_ones = 0, thinned = 0;
  for (int r = 0; r < 1000; ++r) {
    const cost_graph g = random_costs(random);
    const std::map<std::int64_t, double> front = pareto(g);
    const std::vector<solution> curve = memory_curve(g, std::numeric_limits<std::int64_t>::max());
    REQUIRE(curve.size() == front.size());
    auto at = front.rbegin();  // the most memory first
    for (std::size_t p = 0; p < curve.size(); ++p, ++at) {
      const auto& [memory, time] = *at;
      REQUIRE(curve[p].optimal);
      REQUIRE(curve[p].memory == memory);
      REQUIRE(curve[p].time == Approx(time).epsilon(1e-9));
      REQUIRE(evaluate(g, curve[p].choices).memory == memory);
    }
    most = std::max(most, curve.size());
    const std::vector<solution> some = memory_curve(g, 3);  // of the same front, both ends among them
    REQUIRE(some.size() <= 4);
    long_ones += curve.size() > 4;
    thinned += some.size() < curve.size();
    REQUIRE(some.empty() == curve.empty());
    if (some.empty()) continue;
    REQUIRE(some.front().time == Approx(curve.front().time).epsilon(1e-9));
    REQUIRE(some.back().memory == curve.back().memory);
    for (const solution& s : some)
      CHECK(std::any_of(curve.begin(), curve.end(), [&](const solution& c) {
        return c.time == Approx(s.time).epsilon(1e-9) && c.memory <= s.memory;
      }));
  }
  CHECK(most > 8);
  CHECK(long_ones > 0);
  CHECK(thinned >= long_ones);
  CHECK_THROWS_AS(memory_curve(three(), 1), bad_input);
  cost_graph line;
  line.nodes = {{"only", {1, 2, 4}, {400, 200, 100}, {}}};
  CHECK(to_text(memory_curve(line)) ==
        "     400 bytes           1\n"
        "     200 bytes           2  1 (100.0%) slower         #############\n"
        "     100 bytes           4  3 (300.0%) slower         ########################################\n");
}

TEST_CASE("differences of two plans add up to all of it") {
  std::mt19937 random(4);
  int forbidden = 0, over = 0, equal = 0, wins = 0;
  for (int r = 0; r < 5000; ++r) {
    cost_graph g = random_costs(random);
    const bool whole = r % 3 != 0;  // numbers, so that sums are exact in any order
    if (!whole) g = with_digits(std::move(g), random);
    const std::vector<int> named = any_plan(g, random), best = r % 2 ? any_plan(g, random) : solve(g).choices;
    if (best.empty() || evaluate(g, best).time == infinite) continue;
    const comparison c = compare(g, named, best);
    const plan_cost a = evaluate(g, named), b = evaluate(g, best);
    REQUIRE(c.named.time == a.time);
    REQUIRE(c.best.memory == b.memory);
    double time = 0;
    std::int64_t memory = c.transient;
    std::vector<char> listed(g.nodes.size(), 0);
    for (std::size_t k = 0; k < c.nodes.size(); ++k) {
      const node_difference& d = c.nodes[k];
      const auto n = static_cast<std::size_t>(d.node);
      time += d.own + d.joint;
      memory += d.memory;
      REQUIRE(d.named == named[n]);
      REQUIRE(d.best == best[n]);
      const auto here = [&](const cost_edge& e) { return e.from == d.node || e.to == d.node; };
      REQUIRE((d.named != d.best || std::any_of(g.edges.begin(), g.edges.end(), here)));
      REQUIRE(!listed[n]);
      listed[n] = 1;
      if (k > 0) REQUIRE(c.nodes[k - 1].time() >= d.time());
    }
    for (std::size_t n = 0; n < listed.size(); ++n) REQUIRE((listed[n] || named[n] == best[n]));
    REQUIRE(c.loss == time);
    REQUIRE(memory == a.memory - b.memory);
    if (whole || a.time == infinite) REQUIRE(c.loss == a.time - b.time);
    else REQUIRE(c.loss == Approx(a.time - b.time).margin(1e-10));
    REQUIRE((a.time == infinite) == (c.forbidden_nodes.size() + c.forbidden_edges.size() > 0));
    REQUIRE(c.over_limit == (g.memory_limit ? std::max<std::int64_t>(0, a.memory - *g.memory_limit) : 0));
    forbidden += a.time == infinite;
    over += c.over_limit > 0;
    equal += named == best;
    wins += c.loss < 0;
    if (named == best) REQUIRE(c.nodes.empty());
    REQUIRE_FALSE(to_text(g, c).empty());
  }
  CHECK(forbidden > 500);
  CHECK(over > 500);
  CHECK(equal > 100);
  CHECK(wins > 100);
}

TEST_CASE("explanations are lines for people") {
  cost_graph g = three();
  solution s = solve(g);
  CHECK(to_text(g, s, alternatives(g, s)) ==
        "read: choice 0; next best is choice 1, 3 (100.0%) slower\n"
        "node 1: choice 0; next best is choice 1, 4 (133.3%) slower\n"
        "write: choice 0; next best is choice 1, 3 (100.0%) slower\n");
  const auto names = [](int, int choice) { return std::string(choice ? "lean" : "fast"); };
  CHECK(to_text(g, compare(g, {1, 0, 0}, s.choices), names) ==
        "6 against 3: 3 (100.0%) slower\n"
        "+2.5  read: lean instead of fast (itself +2, with others +0.5), 60 bytes less\n"
        "+0.5  node 1: fast in both\n");
  CHECK(to_text(g, compare(g, s.choices, s.choices)) == "3 against 3: as fast\n");

  g.memory_limit = 250;
  s = solve(g);
  CHECK(to_text(*relaxed(g, s)) == "memory limit 250 bytes: 6; 275 bytes: 6, as fast\n");
  CHECK(to_text(*relaxed(g, s, 2)) == "memory limit 250 bytes: 6; 500 bytes: 3, 3 (50.0%) faster\n");
  g.nodes[0].time = std::vector<double>{1, infinite};
  g.edges[1].time = std::vector<double>{0, 1, infinite, 0};
  g.nodes[1].transient = {1 << 20, 0};
  CHECK(to_text(g, compare(g, {1, 1, 0}, {0, 0, 0})) ==
        "read: choice 1 is forbidden\n"
        "node 1: choice 1 is forbidden with choice 0 of write\n"
        "+inf  read: choice 1 instead of choice 0, 60 bytes less\n"
        "+inf  node 1: choice 1 instead of choice 0 (itself +2, with others +inf), 60 bytes less\n"
        "+inf  write: choice 0 in both\n"
        "largest transient: 1.00 MiB less\n");
  g.nodes[1].transient.clear();
  s = solve(g);
  CHECK(to_text(g, s, alternatives(g, s)) ==
        "read: choice 0; no other is possible within the memory limit\n"
        "node 1: choice 0; next best is choice 1, 2 (33.3%) slower\n"
        "write: choice 1; no other is possible within the memory limit\n");
  solve_options little;
  little.max_steps = 0;
  CHECK(to_text(g, s, alternatives(g, s, little)) ==
        "read: choice 0; no other is possible within the memory limit\n"
        "node 1: choice 0; what others cost is not known\n"
        "write: choice 1; what others cost is not known\n");
  CHECK(to_text(g, compare(g, {0, 0, 0}, s.choices)) ==
        "breaks the memory limit by 50 bytes\n"
        "3 against 6: 3 (50.0%) faster\n"
        "-0.5  node 1: choice 0 in both\n"
        "-2.5  write: choice 0 instead of choice 1 (itself -2, with others -0.5), 60 bytes more\n");
  g.memory_limit = 100;
  CHECK(to_text(*relaxed(g, solve(g))) == "memory limit 100 bytes: no plan; 110 bytes: no plan\n");
}

TEST_CASE("what cannot be explained is refused") {
  cost_graph g = three();
  const solution s = solve(g);
  CHECK_THROWS_AS(alternatives(g, solution{}), cfp::bad_input);
  CHECK_THROWS_AS(compare(g, {0, 0}, s.choices), cfp::bad_input);
  CHECK_THROWS_AS(compare(g, s.choices, {0, 0, 2}), cfp::bad_input);
  for (const double factor : {0.9, infinite, std::numeric_limits<double>::quiet_NaN()})
    CHECK_THROWS_AS(relaxed(g, s, factor), cfp::bad_input);
  CHECK_FALSE(relaxed(g, s));
  g.nodes[0].time = std::vector<double>{infinite, 3};
  CHECK_THROWS_AS(compare(g, {1, 0, 0}, s.choices), cfp::bad_input);
  CHECK_THROWS_AS(alternatives(g, s), cfp::bad_input);
  g.nodes[0].time = std::vector<double>{};
  CHECK_THROWS_AS(compare(g, {1, 0, 0}, s.choices), invalid_cost_graph);
}

}  // namespace explanation_tests
