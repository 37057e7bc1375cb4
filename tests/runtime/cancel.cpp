// Solvers that are told to stop answer what they have; long chains; times that cannot be added up.
#include "../catch.hpp"
#include "../random_costs.hpp"

#include <cfp/solve/explain/explanation.hpp>
#include <cfp/solve/other/markov_chain.hpp>

#include <chrono>
#include <thread>

namespace cancel_tests {

using namespace cfp;

namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

// What any answer must be, whenever it was asked for, given the best time there is.
void check_answer(const cost_graph& g, const solution& s, double optimum) {
  REQUIRE(s.bound <= optimum + 1e-9 * std::abs(optimum));
  if (s.optimal) REQUIRE(s.feasible == (optimum < infinite));
  if (!s.feasible) {
    REQUIRE(s.choices.empty());
    return;
  }
  const plan_cost cost = evaluate(g, s.choices);
  REQUIRE(cost.time == s.time);
  REQUIRE(cost.memory == s.memory);
  if (g.memory_limit) REQUIRE(s.memory <= *g.memory_limit);
  REQUIRE(s.bound <= s.time);
  if (s.optimal) REQUIRE(s.time == Approx(optimum).epsilon(1e-9));
  else REQUIRE(s.time >= optimum - 1e-9 * std::abs(optimum));
}

solve_options stopped_before() {
  std::stop_source source;
  source.request_stop();
  solve_options out;
  out.stop = source.get_token();
  return out;
}

// Solves while another thread waits and then requests the stop; how long it took from there, in seconds.
template <class Solve>
double stop_after(std::chrono::microseconds wait, const Solve& run) {
  std::stop_source source;
  std::chrono::steady_clock::time_point asked;
  std::jthread other([&] {
    std::this_thread::sleep_for(wait);
    asked = std::chrono::steady_clock::now();
    source.request_stop();
  });
  solve_options options;
  options.stop = source.get_token();
  run(options);
  const auto end = std::chrono::steady_clock::now();
  other.join();
  return std::chrono::duration<double>(end - asked).count();
}

cost_node random_node(std::mt19937& random, int choices) {
  cost_node n;
  std::vector<double> times;
  for (int c = 0; c < choices; ++c) {
    times.push_back(static_cast<double>(random() % 1000));
    n.memory.push_back(static_cast<std::int64_t>(random() % 1000));
    n.transient.push_back(static_cast<std::int64_t>(random() % 3000));
  }
  n.time = times;
  return n;
}

void join(cost_graph& g, std::size_t from, std::size_t to, std::mt19937& random) {
  std::vector<double> times;
  for (std::size_t k = g.nodes[from].time.size() * g.nodes[to].time.size(); k > 0; --k)
    times.push_back(random() % 20 == 0 ? infinite : static_cast<double>(random() % 500));
  g.edges.push_back({static_cast<int>(from), static_cast<int>(to), times});
}

// Much is alive at every cut, so that a memory limit makes the exact solver search for long.
cost_graph grid(std::size_t width, std::size_t length, int choices) {
  std::mt19937 random(1);
  cost_graph g;
  for (std::size_t n = 0; n < width * length; ++n) {
    g.nodes.push_back(random_node(random, choices));
    if (n % width > 0) join(g, n - 1, n, random);
    if (n >= width) join(g, n - width, n, random);
  }
  return g;
}

cost_graph chain(std::size_t nodes) {
  std::mt19937 random(2);
  cost_graph g;
  for (std::size_t n = 0; n < nodes; ++n) {
    g.nodes.push_back(random_node(random, 2 + static_cast<int>(random() % 3)));
    if (n > 0) join(g, n - 1, n, random);
  }
  return g;
}

// What the nodes of a chain before each one take at least, for each of its choices; the node itself left out.
std::vector<std::vector<double>> before(const cost_graph& g) {
  std::vector<std::vector<double>> out{std::vector<double>(g.nodes[0].time.size(), 0.0)};
  for (std::size_t n = 1; n < g.nodes.size(); ++n) {
    const std::size_t rows = g.nodes[n - 1].time.size(), columns = g.nodes[n].time.size();
    const shared_table &own = g.nodes[n - 1].time, &joint = g.edges[n - 1].time;
    std::vector<double> least(columns, infinite);
    for (std::size_t a = 0; a < rows; ++a)
      for (std::size_t b = 0; b < columns; ++b)
        least[b] = std::min(least[b], out[n - 1][a] + own[a] + joint[a * columns + b]);
    out.push_back(least);
  }
  return out;
}

// The same from the other end.
std::vector<std::vector<double>> after(const cost_graph& g) {
  std::vector<std::vector<double>> out(g.nodes.size());
  out.back().assign(g.nodes.back().time.size(), 0.0);
  for (std::size_t n = g.nodes.size() - 1; n > 0; --n) {
    const std::size_t rows = g.nodes[n - 1].time.size(), columns = g.nodes[n].time.size();
    const shared_table &own = g.nodes[n].time, &joint = g.edges[n - 1].time;
    out[n - 1].assign(rows, infinite);
    for (std::size_t a = 0; a < rows; ++a)
      for (std::size_t b = 0; b < columns; ++b)
        out[n - 1][a] = std::min(out[n - 1][a], out[n][b] + own[b] + joint[a * columns + b]);
  }
  return out;
}

std::string refused(const cost_graph& g) {
  try {
    validate(g);
  } catch (const invalid_cost_graph& e) {
    return e.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a stop requested beforehand leaves what takes no search") {
  std::mt19937 random(1);
  int found = 0;
  for (int r = 0; r < 1000; ++r) {
    const cost_graph g = random_costs(random);
    const double optimum = exhaustive(g).time;
    const solution greedy = greedy_policy().solve(g, stopped_before()), exact = solve(g, stopped_before());
    check_answer(g, greedy, optimum);
    check_answer(g, exact, optimum);
    CHECK(exact.choices == greedy.choices);
    CHECK_FALSE(exact.optimal);
    CHECK(exact.bound == -infinite);
    CHECK(markov_chain_policy().solve(g, stopped_before()).choices == greedy.choices);
    check_answer(g, exhaustive(g, stopped_before()), optimum);
    if (exact.feasible)
      for (const alternative& a : alternatives(g, solve(g), stopped_before()))
        CHECK((a.proven ? a.time == infinite : a.price == 0));
    found += exact.feasible;
  }
  CHECK(found > 500);
}

TEST_CASE("exhaustive search that runs out of budget has the best of the plans it saw") {
  cost_graph g;
  std::mt19937 random(2);
  for (int n = 0; n < 8; ++n) g.nodes.push_back(random_node(random, 5));
  const solution all = exhaustive(g);
  CHECK(all.optimal);
  double last = infinite;
  for (const double steps : {0.0, 1e3, 1e4, 1e5, 1e6}) {
    solve_options options;
    options.max_steps = steps;
    const solution s = exhaustive(g, options);
    check_answer(g, s, all.time);
    CHECK(s.feasible);
    CHECK(s.optimal == (steps == 1e6));
    CHECK(s.time <= last);
    last = s.time;
  }
  g.memory_limit = 0;
  CHECK_FALSE(exhaustive(g, stopped_before()).least_memory);
  CHECK(exhaustive(g).least_memory);
}

TEST_CASE("a stop at any moment leaves a consistent answer") {
  std::mt19937 random(3);
  int stopped = 0, proven = 0;
  for (unsigned seed = 0; seed < 4; ++seed) {
    cost_graph g = seed % 2 ? layered_costs(10, 5, seed) : grid(3 + seed / 2, 8, 4);
    const std::int64_t most = solve(g).memory;
    g.memory_limit = 0;
    const std::int64_t least = *solve(g).least_memory;
    g.memory_limit = least + (most - least) / 3;
    const auto begin = std::chrono::steady_clock::now();
    const double optimum = solve(g).time;
    const auto whole =
        std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - begin).count();
    for (int r = 0; r < 30; ++r) {
      const std::chrono::microseconds wait(random() % static_cast<std::uint64_t>(whole + 1));
      stop_after(wait, [&](const solve_options& options) {
        const solution s = solve(g, options);
        check_answer(g, s, optimum);
        (s.optimal ? proven : stopped) += 1;
      });
    }
  }
  CHECK(stopped > 0);
}

TEST_CASE("a long search returns soon after it is told to stop") {
  cost_graph g = grid(6, 100, 5);
  const solution free = solve(g);
  g.memory_limit = 0;
  const std::int64_t least = *solve(g).least_memory;
  g.memory_limit = least + (free.memory - least) / 8;
  for (const int ms : {1, 100, 1000}) {
    solution s;
    const double late =
        stop_after(std::chrono::milliseconds(ms), [&](const solve_options& options) { s = solve(g, options); });
    INFO("told after " << ms << " ms, took " << late << " s more, gap " << s.gap());
    check_answer(g, s, s.time);
    if (s.bound > -infinite) CHECK(s.bound >= free.time * (1 - 1e-9));
    CHECK(late < 60);  // some hundred times what it takes
  }
  // Other solvers.
  solution s;
  stop_after(std::chrono::milliseconds(50), [&](const solve_options& options) {
    markov_chain_policy endless;
    endless.moves = std::numeric_limits<long>::max();
    s = endless.solve(g, options);
  });
  check_answer(g, s, s.time);
  cost_graph many;
  std::mt19937 random(4);
  for (int n = 0; n < 26; ++n) many.nodes.push_back(random_node(random, 2));
  stop_after(std::chrono::milliseconds(50), [&](const solve_options& options) { s = exhaustive(many, options); });
  check_answer(many, s, solve(many).time);
  CHECK(s.feasible);
  const solution best = solve(many);
  many.memory_limit = best.memory;
  std::vector<alternative> others;
  stop_after(std::chrono::milliseconds(1),
             [&](const solve_options& options) { others = alternatives(many, best, options); });
  for (const alternative& a : others) CHECK(a.price >= 0);
}

TEST_CASE("a chain of 100000 nodes equals dynamic programming") {
  cost_graph g = chain(100000);
  const auto left = before(g), right = after(g);
  double optimum = infinite;
  for (std::size_t c = 0; c < left[0].size(); ++c)
    optimum = std::min(optimum, left[0][c] + g.nodes[0].time[c] + right[0][c]);
  const solution s = solve(g);
  CHECK(s.optimal);
  CHECK(s.time == optimum);  // whole numbers
  CHECK(evaluate(g, s.choices).time == optimum);
  const auto others = alternatives(g, s);
  REQUIRE(others.size() == g.nodes.size());
  std::size_t wrong = 0;
  for (std::size_t n = 0; n < others.size(); ++n) {
    double next = infinite;
    for (std::size_t c = 0; c < left[n].size(); ++c)
      if (static_cast<int>(c) != s.choices[n]) next = std::min(next, left[n][c] + g.nodes[n].time[c] + right[n][c]);
    wrong += others[n].time != next || others[n].price != next - optimum || !others[n].proven;
  }
  CHECK(wrong == 0);
  cost_graph other = g;  // some plan that is not forbidden
  for (cost_node& n : other.nodes) n.time.assign(n.time.size(), 0.0);
  const comparison c = compare(g, solve(other).choices, s.choices);
  CHECK(c.loss > 0);
  CHECK(c.loss == c.named.time - optimum);

  g.memory_limit = s.memory * 9 / 10;
  solution limited;
  stop_after(std::chrono::seconds(1), [&](const solve_options& options) { limited = solve(g, options); });
  check_answer(g, limited, limited.time);
  CHECK(limited.time >= optimum);
}

TEST_CASE("times that cannot be added up are refused by the node's name") {
  const auto two = [](double a, double b) {
    cost_graph g;
    for (const double t : {a, b}) {
      cost_node n;
      n.name = g.nodes.empty() ? "first" : "second";
      n.time = std::vector<double>{0, t};
      n.memory = {0, 0};
      g.nodes.push_back(n);
    }
    g.edges.push_back({0, 1, std::vector<double>{0, 0, 0, 0}});
    return g;
  };
  constexpr double largest = std::numeric_limits<double>::max();
  CHECK(refused(two(1, infinite)) == "");
  CHECK(refused(two(-1e299, 8e299)) == "");
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(refused(two(1, nan)) == "node 1 'second': the time of choice 1 must be a finite number or +infinity, got: nan");
  CHECK(refused(two(-infinite, 1)) ==
        "node 0 'first': the time of choice 1 must be a finite number or +infinity, got: -inf");
  for (const cost_graph& g : {two(6e299, 6e299), two(6e299, -6e299), two(1, largest), two(1e300, -largest)}) {
    CHECK(refused(g).rfind("node 1 'second': the largest finite times up to here must sum to at most 1e300", 0) == 0);
    CHECK_THROWS_AS(solve(g), invalid_cost_graph);
    CHECK_THROWS_AS(solve(g, stopped_before()), invalid_cost_graph);
    CHECK_THROWS_AS(compare(g, {0, 0}, {0, 0}), invalid_cost_graph);
  }
  cost_graph g = two(1, 9e299);
  g.edges[0].time = std::vector<double>{0, 2e299, 0, 0};
  CHECK(refused(g).rfind("edge 0 (0 -> 1)", 0) == 0);
  for (const double t : {nan, -infinite}) {
    g.edges[0].time = std::vector<double>{0, 0, 0, t};
    CHECK(refused(g).rfind("edge 0 (0 -> 1): the time of entry 3 must be", 0) == 0);
  }
}

}  // namespace cancel_tests
