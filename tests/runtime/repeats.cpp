// Layers that stand several times in a model: what is found with what searches have in common for them is what is found
// without, and which groups of operations are alike is what trying every order says. So many models as CFP_REPEATS
// says, drawn from CFP_SEED on.
#include "../catch.hpp"

#include "../from_environment.hpp"
#include "../random_graph.hpp"
#include "small.hpp"

#include <cfp/block/segments.hpp>
#include <cfp/model/differentiate.hpp>
#include <cfp/plan/machine_search.hpp>

#include <numeric>
#include <random>
#include <set>
#include <tuple>

namespace repeats_tests {

using namespace cfp;
using namespace small_tests;

namespace {

const long usual = how_many(1000, 400, 30);

struct drawn {
  graph g;
  mesh_shape mesh;
  machine m;
  decision_graph d;
};

// A layer two to six times, of every third model more often; of every second one the layers are written in an order of
// their own each. No decision of a model has very many choices.
drawn draw(std::mt19937& random) {
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  const mesh_shape meshes[] = {mesh_of({2}), mesh_of({2}), mesh_of({3}), mesh_of({4}), mesh_of({2, 2})};
  for (;;) {
    const random_sizes of = below(2) == 0 ? random_sizes::scarce : random_sizes::tiny;
    const int copies = below(3) == 0 ? 7 + below(4) : 2 + below(5);
    const repeated_layers layers = random_repeated_layers(random, copies, of);
    const graph forward = below(2) == 0 ? layers.forward : reordered(layers.forward, random, layers.ends);
    const mesh_shape& mesh = meshes[below(5)];
    const double speed = 1e6 * std::exp2(below(12)), latency = 1e-7 * std::exp2(below(8));
    training how;
    how.micro_batches = 1 + below(2);
    drawn out{differentiate(refine(forward), how), mesh, plain_machine(mesh, 1e8, 1e8, 1e-7, {{latency, speed}}), {}};
    out.d = decisions(out.g, parallel_blocks(out.g), mesh, axis_choice::regathered);
    std::size_t most = 0;
    for (const decision& n : out.d.nodes) most = std::max(most, n.choices());
    if (most <= 40) return out;
  }
}

// Every decision and every edge priced by a builder that knows no other.
cost_graph priced_apart(const drawn& x) {
  const auto& [g, mesh, m, d] = x;
  const described_prices prices(m, mesh);
  target on(2);
  on.prices = &prices;
  cost_graph out;
  for (const decision& n : d.nodes) {
    decision_graph one;
    one.nodes = {n};
    out.nodes.push_back(roofline(g, mesh, one, m, on).build().nodes.front());
  }
  for (const decision_edge& e : d.edges) {
    decision_graph two;
    two.nodes = {d.nodes[static_cast<std::size_t>(e.from)], d.nodes[static_cast<std::size_t>(e.to)]};
    two.edges = {{0, 1, e.value}};
    out.edges.push_back({e.from, e.to, roofline(g, mesh, two, m, on).build().edges.front().time});
  }
  return out;
}

// No table is the same as another.
cost_graph unshared(cost_graph g) {
  for (cost_node& n : g.nodes) n.time = std::vector<double>(n.time.all());
  for (cost_edge& e : g.edges) e.time = std::vector<double>(e.time.all());
  return g;
}

solve_options without_runs(const cost_graph& g) {
  solve_options o;
  o.least_copies = g.nodes.size() + 1;
  return o;
}

double plans_of(const cost_graph& g) {
  double out = 1;
  for (const cost_node& n : g.nodes) out *= static_cast<double>(n.time.size());
  return out;
}

struct counts {
  long shared = 0, runs = 0, limited = 0, enumerated = 0;
  double most_choices = 0;
};

// The best by all that is known of repeats: as without it, and as of all plans where these are few.
solution check_best(const cost_graph& known, const cost_graph& apart, counts& seen) {
  const solution by_all = solve(known), plain = solve(apart, without_runs(apart));
  REQUIRE(by_all.optimal);
  REQUIRE(plain.optimal);
  REQUIRE(by_all.feasible);
  REQUIRE(plain.feasible);
  REQUIRE(by_all.time == Approx(plain.time).epsilon(1e-9));
  REQUIRE(cfp::evaluate(apart, by_all.choices).time == Approx(by_all.time).epsilon(1e-9));
  REQUIRE(cfp::evaluate(apart, by_all.choices).memory == by_all.memory);
  if (known.memory_limit) REQUIRE(by_all.memory <= *known.memory_limit);
  if (const double plans = plans_of(known); plans > 1 && plans <= 20000) {
    ++seen.enumerated;
    REQUIRE(exhaustive(apart).time == Approx(by_all.time).epsilon(1e-9));
  }
  return by_all;
}

std::int64_t least_memory_of(cost_graph g, const solve_options& o) {
  g.memory_limit = -1;
  const solution s = solve(g, o);
  REQUIRE(s.optimal);
  REQUIRE(s.least_memory);
  return *s.least_memory;
}

bool has_run(const cost_graph& g) {
  const cfp::detail::problem p = cfp::detail::without_dominated(cfp::detail::make_problem(g), false);
  const auto run = cfp::detail::find_run(p, solve_options().least_copies);
  return run && cfp::detail::run_elimination::worthwhile(p, *run);
}

void check_model(const drawn& x, double where, counts& seen) {
  machine_search search(x.g, x.mesh, x.d, x.m);
  cost_graph known = search.costs();
  cost_graph apart = unshared(priced_apart(x));
  std::set<const void*> tables;
  for (const cost_edge& e : known.edges) tables.insert(e.time.id());
  seen.shared += tables.size() < known.edges.size();
  seen.runs += has_run(known);
  const solution fastest = check_best(known, apart, seen);
  const std::int64_t least = least_memory_of(known, {});
  REQUIRE(least == least_memory_of(apart, without_runs(apart)));
  const auto room = static_cast<double>(fastest.memory - least);
  known.memory_limit = apart.memory_limit = least + static_cast<std::int64_t>(where * room);
  seen.limited += check_best(known, apart, seen).time > fastest.time;
}

// Whether one operation can stand for another, as far as it alone says.
bool same_operator(const operation& a, const operation& b) {
  return a.op->label == b.op->label && template_arguments(*a.op) == template_arguments(*b.op) && a.sizes == b.sizes &&
         a.scalars == b.scalars && a.r.operands == b.r.operands && a.r.results == b.r.results;
}

// Whether operations are the same one by one, and their tensors stand for each other.
bool same_in_order(const graph& g, const std::vector<placed_operation>& a, const std::vector<placed_operation>& b) {
  std::map<int, int> there, back;
  const auto tie = [&](int v, int w) {
    const value &x = g[v], &y = g[w];
    return there.try_emplace(v, w).first->second == w && back.try_emplace(w, v).first->second == v &&
           x.type == y.type && x.role == y.role && (x.type != element::index || x.fill.bound == y.fill.bound);
  };
  for (std::size_t i = 0; i < a.size(); ++i) {
    const operation &x = g.at(a[i].operation), &y = g.at(b[i].operation);
    if (a[i].place != b[i].place || !same_operator(x, y)) return false;
    for (int k = 0; k < x.operands.size(); ++k)
      if (!tie(x.operands[k], y.operands[k])) return false;
    for (int k = 0; k < x.results.size(); ++k)
      if (!tie(x.results[k], y.results[k])) return false;
  }
  return true;
}

// By definition: in some order of the second.
bool alike(const graph& g, const std::vector<placed_operation>& a, std::vector<placed_operation> b) {
  if (a.size() != b.size()) return false;
  const auto before = [](const placed_operation& x, const placed_operation& y) { return x.operation < y.operation; };
  std::sort(b.begin(), b.end(), before);
  do {
    if (same_in_order(g, a, b)) return true;
  } while (std::next_permutation(b.begin(), b.end(), before));
  return false;
}

// What a group computes: operators on what is given (below 0) and on what was computed before.
struct recipe {
  struct step {
    int op = 0, left = 0, right = 0, place = 0;
  };
  std::vector<step> steps;
};

recipe random_recipe(std::mt19937& random) {
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  recipe out;
  for (int n = 0, size = 2 + below(5); n < size; ++n)
    out.steps.push_back({below(4), below(n + 2) - 2, below(n + 2) - 2, below(5) == 0});
  return out;
}

void change(recipe& r, std::mt19937& random) {
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  const int n = below(static_cast<int>(r.steps.size()));
  recipe::step& s = r.steps[static_cast<std::size_t>(n)];
  switch (below(4)) {
    case 0: s.op = below(4); return;
    case 1: s.left = below(n + 2) - 2; return;
    case 2: std::swap(s.left, s.right); return;
    default: s.place = below(2); return;
  }
}

// Written in an order that is drawn, in a model that may hold others.
std::vector<placed_operation> write(const recipe& r, model& net, std::mt19937& random) {
  static int written = 0;
  const dimension rows{"rows", 4}, columns{"columns", 4};
  const std::string number = std::to_string(written++);
  const tensor given[] = {net.activation("x" + number, {rows, columns}), net.weight("w" + number, {rows, columns}, {})};
  std::vector<tensor> made(r.steps.size());
  std::vector<placed_operation> out;
  while (out.size() < r.steps.size()) {
    const std::size_t n = random() % r.steps.size();
    const recipe::step& s = r.steps[n];
    const auto there = [&](int i) { return i < 0 || made[static_cast<std::size_t>(i)].net != nullptr; };
    const auto at = [&](int i) { return i < 0 ? given[-1 - i] : made[static_cast<std::size_t>(i)]; };
    const bool binary = s.op < 2;
    if (made[n].net != nullptr || !there(s.left) || (binary && !there(s.right))) continue;
    const int operation = net.recorded.size();
    made[n] = s.op == 0   ? add(at(s.left), at(s.right))
              : s.op == 1 ? mul(at(s.left), at(s.right))
              : s.op == 2 ? gelu(at(s.left))
                          : scaled(at(s.left), 0.5);
    out.push_back({operation, s.place});
  }
  return out;
}

// All a block is found equal by.
std::vector<placed_operation> operations_of(const block_structure& s, const block& b) {
  std::vector<placed_operation> out;
  const auto take = [&](int p, int place) {
    for (const int o : s.parts[static_cast<std::size_t>(p)].operations) out.push_back({o, place});
  };
  for (const int e : b.entries) take(e, part::entry);
  take(b.body, part::body);
  for (const int t : b.tails) take(t, part::tail);
  return out;
}

// By definition: from the left, what covers most by standing more than once, of the shortest of such.
std::vector<std::pair<int, int>> segments_by_definition(const std::vector<int>& kinds) {
  std::vector<std::pair<int, int>> out;
  const int n = static_cast<int>(kinds.size());
  for (int at = 0; at < n;) {
    int period = 1, covered = 1;
    for (int p = 1; at + 2 * p <= n; ++p)
      for (int copies = 2; at + copies * p <= n; ++copies) {
        bool equal = true;
        for (int i = at; i < at + copies * p; ++i)
          equal = equal && kinds[static_cast<std::size_t>(i)] == kinds[static_cast<std::size_t>(at + (i - at) % p)];
        if (equal && copies * p > covered) period = p, covered = copies * p;
      }
    for (int end = at + covered; at < end; at += period) out.emplace_back(at, period);
  }
  return out;
}

}  // namespace

TEST_CASE("plans of models of equal layers are those that are found without knowing of it") {
  const long first = from_environment("CFP_SEED", 1), count = from_environment("CFP_REPEATS", usual);
  counts seen;
  for (long seed = first; seed < first + count; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random(static_cast<std::mt19937::result_type>(seed));
    const drawn x = draw(random);
    check_model(x, std::uniform_real_distribution<double>(0, 1)(random), seen);
  }
  if (count < 50) return;
  CHECK(seen.shared > count * 9 / 10);
  CHECK(seen.runs > count / 20);
  CHECK(seen.limited > count / 2);
  CHECK(seen.enumerated > count / 4);
}

TEST_CASE("groups of operations are alike where trying every order finds them so") {
  std::mt19937 random(29);
  int equal = 0, different = 0, rewritten = 0;
  for (int r = 0; r < 3000; ++r) {
    model net;
    const recipe first = random_recipe(random);
    recipe second = first;
    for (int changes = static_cast<int>(random() % 3); changes > 0; --changes) change(second, random);
    const std::vector<placed_operation> a = write(first, net, random), b = write(second, net, random);
    alike_groups groups(net.recorded);
    const bool found = groups.kind(a) == groups.kind(b), expected = alike(net.recorded, a, b);
    INFO("draw " << r << " of " << a.size() << " operations");
    REQUIRE(found == expected);
    equal += expected, different += !expected;
    rewritten += expected && !same_in_order(net.recorded, a, b);
  }
  CHECK(equal > 1000);
  CHECK(rewritten > 500);
  CHECK(different > 1000);
}

TEST_CASE("segments are those of the definition, over blocks that trying every order tells apart") {
  std::mt19937 random(31);
  int looked = 0, repeated = 0;
  for (int r = 0; r < 400; ++r) {
    const repeated_layers layers =
        random_repeated_layers(random, 2 + static_cast<int>(random() % 5), random_sizes::tiny);
    const graph g = refine(reordered(layers.forward, random, layers.ends));
    const block_structure s = parallel_blocks(g);
    std::vector<std::vector<placed_operation>> unique;
    std::vector<int> kinds;
    bool small = true;
    for (const block& b : s.blocks) {
      const std::vector<placed_operation> now = operations_of(s, b);
      small = small && now.size() <= 6;
      if (!small) break;
      const auto at = std::find_if(unique.begin(), unique.end(), [&](const auto& u) { return alike(g, u, now); });
      kinds.push_back(static_cast<int>(at - unique.begin()));
      if (at == unique.end()) unique.push_back(now);
    }
    if (!small) continue;
    ++looked;
    const segmentation found = segments(g, s);
    REQUIRE(found.unique_blocks == static_cast<int>(unique.size()));
    std::vector<std::pair<int, int>> as_found;
    std::set<std::vector<int>> bodies;
    for (const segment& x : found.segments) {
      as_found.emplace_back(x.first, x.count);
      bodies.emplace(kinds.begin() + x.first, kinds.begin() + x.first + x.count);
    }
    REQUIRE(as_found == segments_by_definition(kinds));
    REQUIRE(found.unique == static_cast<int>(bodies.size()));
    repeated += found.segments.size() > static_cast<std::size_t>(found.unique);
  }
  CHECK(looked > 200);
  CHECK(repeated > 200);
}

}  // namespace repeats_tests
