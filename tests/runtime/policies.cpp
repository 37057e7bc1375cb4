// Policies against exhaustive search and each other; cost graphs as files.
#include "../catch.hpp"
#include "../random_costs.hpp"
#include "small.hpp"

#include <cfp/model/differentiate.hpp>
#include <cfp/model/refine.hpp>
#include <cfp/plan/machine_search.hpp>
#include <cfp/solve/cost_file.hpp>
#include <cfp/solve/other/integer_program.hpp>
#include <cfp/solve/other/markov_chain.hpp>

namespace policies_tests {

// CBC 2.10's presolve leaves memory behind; what our own code leaves is still reported.
extern "C" const char* __lsan_default_suppressions() { return "leak:libCoinUtils\nleak:libCbc\n"; }

using namespace cfp;

namespace {

bool same(const cost_graph& a, const cost_graph& b) {
  bool all = a.nodes.size() == b.nodes.size() && a.edges.size() == b.edges.size() && a.memory_limit == b.memory_limit;
  for (std::size_t n = 0; all && n < a.nodes.size(); ++n)
    all = a.nodes[n].name == b.nodes[n].name && a.nodes[n].time == b.nodes[n].time &&
          a.nodes[n].memory == b.nodes[n].memory && a.nodes[n].transient == b.nodes[n].transient;
  for (std::size_t e = 0; all && e < a.edges.size(); ++e)
    all = a.edges[e].from == b.edges[e].from && a.edges[e].to == b.edges[e].to && a.edges[e].time == b.edges[e].time;
  return all;
}

std::string refused(const std::string& text) {
  try {
    read_costs(text, "costs.json");
  } catch (const invalid_cost_graph& e) {
    return e.what();
  }
  return "";
}

// What any answer must be, given the true one.
void check_answer(const cost_graph& g, const solution& s, const solution& oracle) {
  CHECK((!s.feasible || oracle.feasible));
  if (s.optimal) CHECK(s.feasible == oracle.feasible);
  if (!s.feasible) return;
  const plan_cost cost = evaluate(g, s.choices);
  CHECK(cost.time == s.time);
  CHECK(cost.memory == s.memory);
  if (g.memory_limit) CHECK(s.memory <= *g.memory_limit);
  CHECK(s.time >= oracle.time - 1e-9);
  CHECK(s.bound <= oracle.time + 1e-6 * std::abs(oracle.time) + 1e-6);
  if (s.optimal) CHECK(s.time == Approx(oracle.time).margin(1e-6));
}

}  // namespace

TEST_CASE("a cost graph is the same after it was written and read") {
  std::mt19937 random(1);
  for (int r = 0; r < 500; ++r) {
    cost_graph g = random_costs(random);
    for (cost_node& n : g.nodes)
      for (std::size_t c = 0; c < n.time.size(); ++c)
        n.time.set(c, n.time[c] * std::ldexp(static_cast<double>(random()), -70));  // all digits count
    CHECK(same(g, read_costs(to_json(g).dump(r % 2 ? 1 : -1))));
  }
  CHECK(same(layered_costs(2, 5, 3), read_costs(to_json(layered_costs(2, 5, 3)).dump())));
}

TEST_CASE("what is no cost graph is refused in words that name the place") {
  CHECK(refused("{\"nodes\": [\n  {\"time\": [1, 2,]}]}") == "costs.json: line 2, column 18: this is not JSON");
  CHECK(refused("") == "costs.json: line 1, column 1: this is not JSON");
  CHECK(refused("{\"nodes\": [\n{\"time\": [1e999]}]}") ==
        "costs.json: line 2, column 11: the number 1e999 is too large");
  CHECK(refused("[]") == "costs.json: the file must be an object, got array");
  CHECK(refused("{}") == "costs.json: the file must have 'nodes'");
  CHECK(refused("{\"nodes\": [], \"node\": 1}") ==
        "costs.json: the file has the key 'node', which cost graphs do not know");
  CHECK(refused("{\"nodes\": [{\"time\": []}]}") ==
        "costs.json: node 0 '': a node needs at least one choice, got none");
  CHECK(refused("{\"nodes\": [{\"time\": [\"1\"]}]}") ==
        "costs.json: nodes[0].time[0] must be a number, or null for infinite, got \"1\"");
  CHECK(refused("{\"nodes\": [{\"time\": [1], \"memory\": [1.5]}]}") ==
        "costs.json: nodes[0].memory[0] must be a whole number of bytes, got 1.5");
  CHECK(refused("{\"nodes\": [{\"time\": [1], \"memory\": [18446744073709551615]}]}") ==
        "costs.json: nodes[0].memory[0] must be a whole number of bytes, got 18446744073709551615");
  CHECK(refused("{\"nodes\": [{\"time\": [1], \"memory\": [-1]}]}") ==
        "costs.json: node 0 '': the memory of choice 0 must not be negative, got: -1");
  CHECK(refused("{\"nodes\": [{\"time\": [1], \"memory\": [9223372036854775807]}]}").find("must sum to at most") !=
        std::string::npos);
  const std::string two = "{\"nodes\": [{\"time\": [1, 2]}, {\"time\": [1]}], \"edges\": [{\"from\": 0, \"to\": ";
  CHECK(refused(two + "2, \"time\": [[1], [1]]}]}") ==
        "costs.json: edges[0].to must be the index of one of 2 nodes, got 2");
  CHECK(refused(two + "1, \"time\": [[1], [1, 2]]}]}") ==
        "costs.json: edges[0].time[1] must have an entry for each of 1 choices, got 2");
  CHECK(refused(two + "1, \"time\": [[1]]}]}") ==
        "costs.json: edge 0 (0 -> 1): the table must have 2 x 1 entries, got: 1");
  CHECK(refused(two + "0, \"time\": [[1, 2], [1, 2]]}]}").find("two different nodes") != std::string::npos);
}

TEST_CASE("no text makes the reader do anything but read or refuse", "[heavy]") {
  std::mt19937 random(5);
  const auto below = [&](std::size_t n) { return random() % n; };
  const std::string pieces[] = {"null",     "-1",       "1e300", "[",  "]",
                                "{",        "}",        ",",     ":",  "\"",
                                "\"from\"", "\"time\"", "0.5",   "\\", "9999999999999999999",
                                "\xff"};
  int read = 0, refusals = 0;
  for (int r = 0; r < 20000; ++r) {
    std::string text = to_json(random_costs(random)).dump();
    for (std::size_t k = below(4); k > 0; --k) {
      const std::size_t at = below(text.size() + 1);
      switch (below(4)) {
        case 0: text.insert(at, pieces[below(std::size(pieces))]); break;
        case 1: text.erase(at, 1 + below(4)); break;
        case 2:
          if (at < text.size()) text[at] = static_cast<char>(below(256));
          break;
        default: text.resize(at);
      }
    }
    try {
      const cost_graph g = read_costs(text);
      validate(g);
      ++read;
    } catch (const invalid_cost_graph&) {
      ++refusals;
    }
  }
  CHECK(read > 500);
  CHECK(refusals > 5000);
  const std::string deep = std::string(100000, '[') + std::string(100000, ']');  // and not recursive
  CHECK_FALSE(refused(std::string(100000, '[')).empty());
  CHECK(refused("{\"nodes\": [{\"time\": [" + deep + "]}]}") ==
        "costs.json: nodes[0].time[0] must be a number, or null for infinite, got an array");
  CHECK(refused("{\"a\\nb\": 1}") == "costs.json: the file has the key 'a?b', which cost graphs do not know");
}

TEST_CASE("a change of a plan costs what evaluating it again says") {
  std::mt19937 random(7);
  int forbidden = 0;
  for (int r = 0; r < 1000; ++r) {
    cost_graph g = random_costs(random);
    changing_plan plan(g, std::vector<int>(g.nodes.size(), 0));
    for (int m = 0; m < 50; ++m) {
      const std::size_t n = random() % g.nodes.size();
      const int c = static_cast<int>(random() % g.nodes[n].time.size());
      const auto before = plan.time(), by = plan.change(n, c);
      const std::int64_t memory = plan.memory_with(n, c);
      plan.move(n, c);
      const plan_cost cost = evaluate(g, plan.choices());
      const auto now = plan.time();
      REQUIRE(now.forbidden == before.forbidden + by.forbidden);
      REQUIRE((now.forbidden > 0) == (cost.time == std::numeric_limits<double>::infinity()));
      if (now.forbidden == 0) REQUIRE(now.finite == Approx(cost.time));
      REQUIRE(memory == cost.memory);
      REQUIRE(plan.memory() == cost.memory);
      forbidden += now.forbidden > 0;
    }
  }
  CHECK(forbidden > 1000);
}

TEST_CASE("what greedy and Markov chains find is a plan, and never better than the best") {
  std::mt19937 random(9);
  int found = 0, best = 0, there = 0;
  for (int r = 0; r < 2000; ++r) {
    const cost_graph g = random_costs(random);
    const solution oracle = exhaustive(g);
    check_answer(g, greedy_policy().solve(g), oracle);
    markov_chain_policy chain;
    chain.moves = 2000;
    const solution s = chain.solve(g);
    check_answer(g, s, oracle);
    CHECK(chain.solve(g).choices == s.choices);
    there += oracle.feasible;
    found += s.feasible;
    best += s.feasible && s.time <= oracle.time + 1e-9;
  }
  CHECK(found > 0.98 * there);
  CHECK(best > 0.9 * there);
}

TEST_CASE("the answer does not depend on how nodes are numbered") {
  std::mt19937 random(11);
  for (int r = 0; r < 1000; ++r) {
    const cost_graph g = random_costs(random);
    std::vector<int> place(g.nodes.size());
    for (std::size_t n = 0; n < place.size(); ++n) place[n] = static_cast<int>(n);
    std::shuffle(place.begin(), place.end(), random);
    cost_graph other;
    other.memory_limit = g.memory_limit;
    other.nodes.resize(g.nodes.size());
    for (std::size_t n = 0; n < place.size(); ++n) other.nodes[static_cast<std::size_t>(place[n])] = g.nodes[n];
    for (const cost_edge& e : g.edges)
      other.edges.push_back({place[static_cast<std::size_t>(e.from)], place[static_cast<std::size_t>(e.to)], e.time});
    std::shuffle(other.edges.begin(), other.edges.end(), random);
    const solution a = solve(g), b = solve(other);
    CHECK(a.feasible == b.feasible);
    if (a.feasible) CHECK(a.time == Approx(b.time).epsilon(1e-12));
  }
}

#ifdef CFP_HAS_CBC
TEST_CASE("the integer program equals exhaustive search, its relaxation bounds it") {
  std::mt19937 random(13);
  int proven = 0;
  for (int r = 0; r < 300; ++r) {
    const cost_graph g = random_costs(random);
    const solution oracle = exhaustive(g), s = integer_program_policy().solve(g);
    check_answer(g, s, oracle);
    proven += s.optimal;
    if (oracle.feasible) CHECK(linear_bound(g) <= oracle.time + 1e-6);
  }
  CHECK(proven > 290);
}

TEST_CASE("exact equals the integer program where nothing smaller could tell") {
  for (unsigned seed = 0; seed < 6; ++seed) {
    cost_graph g = layered_costs(3, 4, seed);
    const solution free = solve(g), ilp = integer_program_policy().solve(g);
    REQUIRE(free.optimal);
    REQUIRE(ilp.optimal);
    CHECK(free.time == Approx(ilp.time).epsilon(1e-7));
    g.memory_limit = free.memory - free.memory / 10;
    const solution tight = solve(g), by_program = integer_program_policy().solve(g, {2e8, 2e10, 20});
    REQUIRE(tight.optimal);
    if (by_program.optimal) CHECK(tight.time == Approx(by_program.time).epsilon(1e-7));
    else CHECK(by_program.bound <= tight.time * (1 + 1e-9));
  }
}

TEST_CASE("Alpa's plan is the same by its own solver, the integer program, and by elimination") {
  const graph g = differentiate(refine(decoder(small_tests::tiny_config())));
  const mesh_shape mesh = small_tests::mesh_of({4});
  const decision_graph d = decisions(g, parallel_blocks(g), mesh);
  const cost_graph costs = machine_pricing(g, mesh, d, plain_machine(mesh), 2).prices().alpa;
  const solution ours = solve(costs), its = integer_program_policy().solve(costs);
  REQUIRE(ours.optimal);
  REQUIRE(its.optimal);
  CHECK(ours.time == Approx(its.time).epsilon(1e-7));
  machine_search search(g, mesh, d, plain_machine(mesh));
  CHECK(search.alpa(false, integer_program_policy()));
}
#endif

}  // namespace policies_tests
