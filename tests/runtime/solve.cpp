// The exact solver equals exhaustive search, with and without a memory limit; corrections price exactly what they name.
#include "../catch.hpp"

#include "../from_environment.hpp"
#include "../random_costs.hpp"

#include <cfp/solve/correction.hpp>
#include <cfp/solve/exact/exact.hpp>
#include <cfp/solve/other/exhaustive.hpp>

#include <numeric>

namespace solve_tests {

using namespace cfp;

const int part = static_cast<int>(how_many(1, 2, 10));  // one of so many cases

TEST_CASE("exact equals exhaustive on random graphs") {
  std::mt19937 random(1);
  int limited = 0, infeasible = 0;
  for (int r = 0; r < 10000 / part; ++r) {
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
  CHECK(limited > 4000 / part);
  CHECK(infeasible > 100 / part);
}

TEST_CASE("one limit after another is solved as each alone") {
  std::mt19937 random(3);
  int fits = 0, infeasible = 0, near = 0;
  for (int r = 0; r < 1000; ++r) {
    cost_graph g = random_costs(random);
    g.memory_limit.reset();
    const solution free = exhaustive(g);
    if (!free.feasible) continue;
    limit_solver exact(g), rough(g);
    solve_options loose;
    loose.gap = 0.05;
    for (int k = 0; k < 8; ++k) {
      g.memory_limit = static_cast<std::int64_t>(random() % static_cast<std::uint32_t>(2 * free.memory + 2));
      const solution oracle = exhaustive(g), now = exact.solve(g.memory_limit),
                     about = rough.solve(g.memory_limit, loose);
      REQUIRE(now.feasible == oracle.feasible);
      REQUIRE(about.feasible == oracle.feasible);
      REQUIRE(now.optimal);
      (oracle.feasible ? fits : infeasible) += 1;
      if (!oracle.feasible) continue;
      REQUIRE(now.time == Approx(oracle.time).epsilon(1e-9));
      REQUIRE(evaluate(g, about.choices).memory <= *g.memory_limit);
      REQUIRE(about.bound <= oracle.time + 1e-9 * std::fabs(oracle.time));
      REQUIRE(about.time - oracle.time <= loose.gap * std::fabs(about.time) * (1 + 1e-9));
      near += about.time > oracle.time * (1 + 1e-9);
    }
  }
  CHECK(fits > 2000);
  CHECK(infeasible > 500);
  CHECK(near > 0);
}

TEST_CASE("plans below a time are found, or proven not to be there") {
  std::mt19937 random(4);
  int found = 0, none = 0, infeasible = 0;
  for (int r = 0; r < 1000; ++r) {
    cost_graph g = random_costs(random);
    g.memory_limit.reset();
    const solution free = exhaustive(g);
    if (!free.feasible) continue;
    limit_solver solver(g);
    for (int k = 0; k < 8; ++k) {
      g.memory_limit = static_cast<std::int64_t>(random() % static_cast<std::uint32_t>(2 * free.memory + 2));
      const solution oracle = exhaustive(g);
      solve_options how;
      how.gap = k % 2 == 0 ? 0 : 0.05;
      how.below = (oracle.feasible ? oracle.time : free.time) + static_cast<double>(random() % 9) - 4;
      const solution s = solver.solve(g.memory_limit, how);
      CAPTURE(r, k, how.below, oracle.time, s.bound);
      if (how.gap == 0) REQUIRE(s.optimal);
      REQUIRE(s.feasible == (oracle.feasible && oracle.time < how.below));
      if (s.feasible) {
        REQUIRE(evaluate(g, s.choices).memory <= *g.memory_limit);
        REQUIRE(s.time < how.below);
        REQUIRE(s.time - oracle.time <= how.gap * std::fabs(s.time) * (1 + 1e-9));
        ++found;
      } else {
        REQUIRE(s.optimal);
        REQUIRE(s.bound >= how.below);
        if (s.least_memory) REQUIRE(!oracle.feasible);
        (oracle.feasible ? none : infeasible) += 1;
      }
    }
  }
  CHECK(found > 1000);
  CHECK(none > 1000);
  CHECK(infeasible > 500);
}

TEST_CASE("the order of elimination is looked for where that pays, and does not change the answer", "[heavy]") {
  namespace inner = cfp::detail;
  std::mt19937 random(3);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  int improved = 0;
  for (int r = 0; r < 8; ++r) {
    // A grid, its nodes in random places.
    constexpr int rows = 6, columns = 9;
    std::vector<int> place(rows * columns);
    std::iota(place.begin(), place.end(), 0);
    cost_graph graphs[2];
    std::vector<std::vector<double>> times;
    for (int n = 0; n < rows * columns; ++n) times.emplace_back(static_cast<std::size_t>(7 + below(5)));
    std::vector<std::pair<std::pair<int, int>, std::vector<double>>> joint;
    const auto fill = [&](std::vector<double>& table) {
      for (double& t : table) t = below(1000);
    };
    for (auto& t : times) fill(t);
    for (int n = 0; n < rows * columns; ++n)
      for (const int other : {n % columns + 1 < columns ? n + 1 : -1, n + columns < rows * columns ? n + columns : -1})
        if (other >= 0)
          fill(
              joint
                  .emplace_back(std::pair(n, other), std::vector<double>(times[static_cast<std::size_t>(n)].size() *
                                                                         times[static_cast<std::size_t>(other)].size()))
                  .second);
    for (cost_graph& g : graphs) {
      g.nodes.resize(place.size());
      for (std::size_t n = 0; n < place.size(); ++n) {
        cost_node& node = g.nodes[static_cast<std::size_t>(place[n])];
        node.time = times[n];
        node.memory.assign(times[n].size(), 0);
      }
      for (const auto& [ends, table] : joint)
        g.edges.push_back(
            {place[static_cast<std::size_t>(ends.first)], place[static_cast<std::size_t>(ends.second)], table});
      std::shuffle(place.begin(), place.end(), random);
    }
    const solution one = solve(graphs[0]), other = solve(graphs[1]);
    REQUIRE(one.optimal);
    REQUIRE(other.optimal);
    CHECK(one.time == other.time);
    CHECK(evaluate(graphs[0], one.choices).time == one.time);

    const inner::problem p = inner::without_dominated(inner::make_problem(graphs[0]), false);
    std::vector<std::size_t> order = inner::find_elimination_order(p, 2e8, {});
    const double work = inner::layout_builder(p, order, 2e8).take().work;
    double least = std::numeric_limits<double>::infinity();
    for (const auto rule : {inner::order_rule::least_table, inner::order_rule::least_fill})
      least = std::min(
          least,
          inner::layout_builder(
              p, inner::order_search(p, rule, 2e8, std::vector<std::int64_t>(p.nodes.size(), 0)).run({}).nodes, 2e8)
              .take()
              .work);
    improved += work < least;
    std::sort(order.begin(), order.end());
    for (std::size_t n = 0; n < order.size(); ++n) REQUIRE(order[n] == n);
  }
  CHECK(improved >= 2);
}

TEST_CASE("corrections add to exactly the joint choices they name") {
  std::mt19937 random(2);
  const auto below = [&](std::size_t n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  int changed = 0;
  for (int r = 0; r < 1000 / part; ++r) {
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
  CHECK(changed > 100 / part);
}

namespace {

// Equal copies of a random segment, between random nodes, with nodes that every copy is joined to.
cost_graph random_run(std::mt19937& random, int copies) {
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  const auto times = [&](std::size_t n) {
    std::vector<double> out;
    for (std::size_t i = 0; i < n; ++i)
      out.push_back(below(12) == 0 ? std::numeric_limits<double>::infinity() : below(30));
    return shared_table(out);
  };
  cost_graph g;
  const auto bytes = [&](std::size_t n) {
    std::vector<std::int64_t> out;
    for (std::size_t c = 0; c < n; ++c) out.push_back(below(9));
    return out;
  };
  const auto node = [&](const shared_table& t, const std::vector<std::int64_t>& memory) {
    cost_node n;
    n.name = std::to_string(g.nodes.size());
    n.time = t;
    n.memory = memory;
    if (below(2) == 0 && g.nodes.empty()) n.transient = bytes(t.size());
    g.nodes.push_back(n);
    return static_cast<int>(g.nodes.size()) - 1;
  };
  const auto choices = [&](int n) { return g.nodes[static_cast<std::size_t>(n)].time.size(); };
  const int before = below(3), outside = below(3), period = 1 + below(4), after = below(3);
  const auto any_node = [&] {
    const auto n = static_cast<std::size_t>(1 + below(3));
    node(times(n), bytes(n));
  };
  for (int n = 0; n < before + outside; ++n) any_node();
  std::vector<shared_table> of_node;
  std::vector<std::vector<std::int64_t>> bytes_of_node;
  for (int j = 0; j < period; ++j) {
    of_node.push_back(times(static_cast<std::size_t>(1 + below(3))));
    bytes_of_node.push_back(bytes(of_node.back().size()));
  }
  struct joint {
    int from, to;  // offsets, the second one of the next copy if `next`
    bool next, to_outside, turned;
    shared_table time;
  };
  std::vector<joint> joints;
  for (int a = 0; a < period; ++a) {
    for (int b = a + 1; b < period; ++b)
      if (below(2))
        joints.push_back(
            {a, b, false, false, below(2) == 0,
             times(of_node[static_cast<std::size_t>(a)].size() * of_node[static_cast<std::size_t>(b)].size())});
    for (int b = 0; b < period; ++b)
      if (below(3) == 0)
        joints.push_back(
            {a, b, true, false, below(2) == 0,
             times(of_node[static_cast<std::size_t>(a)].size() * of_node[static_cast<std::size_t>(b)].size())});
    for (int o = 0; o < outside; ++o)
      if (below(3) == 0)
        joints.push_back({a, before + o, false, true, below(2) == 0,
                          times(of_node[static_cast<std::size_t>(a)].size() * choices(before + o))});
  }
  const int first = static_cast<int>(g.nodes.size());
  for (int c = 0; c < copies; ++c)
    for (int j = 0; j < period; ++j)
      node(of_node[static_cast<std::size_t>(j)], bytes_of_node[static_cast<std::size_t>(j)]);
  for (int c = 0; c < copies; ++c)
    for (const joint& j : joints) {
      if (j.next && c + 1 == copies) continue;
      const int from = first + c * period + j.from, to = j.to_outside ? j.to : first + (c + j.next) * period + j.to;
      if (!j.turned) {
        g.edges.push_back({from, to, j.time});
        continue;
      }
      std::vector<double> other;  // as an edge from the other end
      for (std::size_t b = 0; b < choices(to); ++b)
        for (std::size_t a = 0; a < choices(from); ++a) other.push_back(j.time[a * choices(to) + b]);
      g.edges.push_back({to, from, other});
    }
  for (int n = 0; n < after; ++n) any_node();
  for (int n = 1; n < static_cast<int>(g.nodes.size()); ++n)  // the ends joined to what is around them
    if ((n <= first || n >= static_cast<int>(g.nodes.size()) - after) && below(2))
      g.edges.push_back({n - 1, n, times(choices(n - 1) * choices(n))});
  std::shuffle(g.edges.begin(), g.edges.end(), random);
  std::stable_sort(g.edges.begin(), g.edges.end(), [](const cost_edge& a, const cost_edge& b) {
    return std::max(a.from, a.to) < std::max(b.from, b.to);
  });
  return g;
}

// Every node for itself.
solution solve_plainly(const cost_graph& g) {
  solve_options o;
  o.least_copies = g.nodes.size() + 1;
  return solve(g, o);
}

std::optional<cfp::detail::repeated_run> run_of(const cost_graph& g) {
  const cfp::detail::problem p = cfp::detail::make_problem(g);
  if (p.dead) return std::nullopt;
  auto run = cfp::detail::find_run(p, 4);
  if (run && !cfp::detail::run_elimination::worthwhile(p, *run)) return std::nullopt;
  return run;
}

}  // namespace

TEST_CASE("runs of equal segments are solved as if they were not") {
  std::mt19937 random(17);
  int runs = 0, infeasible = 0, outside = 0, limited = 0, near = 0;
  for (int r = 0; r < 3200 / part; ++r) {
    cost_graph g = random_run(random, 4 + static_cast<int>(random() % 20));
    const auto run = run_of(g);
    runs += run.has_value();
    outside += run && !run->outside.empty();
    const solution by_powers = solve(g), plain = solve_plainly(g);
    REQUIRE(by_powers.optimal);
    REQUIRE(by_powers.feasible == plain.feasible);
    infeasible += !plain.feasible;
    if (!plain.feasible) continue;
    REQUIRE(by_powers.time == Approx(plain.time).epsilon(1e-12));
    REQUIRE(evaluate(g, by_powers.choices).time == by_powers.time);
    REQUIRE(evaluate(g, by_powers.choices).memory == by_powers.memory);
    g.memory_limit = by_powers.memory - static_cast<std::int64_t>(random() % 12);
    const solution tight = solve(g), tight_plain = solve_plainly(g);
    REQUIRE(tight.optimal);
    REQUIRE(tight.feasible == tight_plain.feasible);
    if (!tight.feasible) continue;
    REQUIRE(tight.time == Approx(tight_plain.time).epsilon(1e-9));
    limited += tight.time > plain.time;
    solve_options o;
    o.gap = 0.05;
    const solution close = solve(g, o);
    REQUIRE(close.feasible);
    REQUIRE(close.gap() <= 0.05 + 1e-9);
    REQUIRE(close.bound <= tight.time * (1 + 1e-9));
    REQUIRE(close.time <= tight.time * (1 + 1e-9) / (1 - 0.05));
    REQUIRE(close.optimal == (close.time <= close.bound * (1 + 2e-10)));
    near += !close.optimal;
  }
  CHECK(runs > 1000 / part);
  CHECK(outside > 300 / part);
  CHECK(infeasible > 30 / part);
  CHECK(limited > 500 / part);
  CHECK(near > 50 / part);
}

TEST_CASE("at any price of memory a run takes what its copies take one by one") {
  namespace inner = cfp::detail;
  std::mt19937 random(23);
  int runs = 0;
  for (int r = 0; r < 2000 / part; ++r) {
    const inner::problem p = inner::make_problem(random_run(random, 4 + static_cast<int>(random() % 12)));
    if (p.dead) continue;
    auto run = inner::find_run(p, 4);
    if (!run || !inner::run_elimination::worthwhile(p, *run)) continue;
    ++runs;
    inner::run_elimination by_run(p, std::move(*run), 2e8, solve_options());
    inner::elimination plain(p, 2e8, inner::infinite_time);
    for (const double price : {0.0, 0.1, 1.0, 7.0}) {
      const double least = by_run.run(price);
      REQUIRE(least == Approx(plain.run(price)).epsilon(1e-12));
      if (least == inner::infinite_time) continue;
      const inner::plan_sums cost = inner::sums(p, by_run.plan());
      REQUIRE(cost.time + price * static_cast<double>(cost.memory - p.base_memory) == Approx(least).epsilon(1e-12));
    }
  }
  CHECK(runs > 300 / part);
}

TEST_CASE("a run of many copies is as one computed step by step") {
  const cost_graph g = layered_costs(1000, 5, 3, true);
  const auto run = run_of(g);
  REQUIRE(run);
  CHECK(run->period == 10);
  CHECK(run->count >= 990);
  CHECK(solve(g).time == Approx(solve_plainly(g).time).epsilon(1e-12));
}

}  // namespace solve_tests
