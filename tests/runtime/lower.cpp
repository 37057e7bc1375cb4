// Lowering: a training under any assignments, each operation's drawn on its own, equals the training of one
// rank; conversions between any partitions deliver what the partitions mean; planned memory never overlaps.
#include "../catch.hpp"

#include "../from_environment.hpp"

#include "assignments.hpp"
#include "open_engine.hpp"

#include <cfp/backend/threads.hpp>
#include <cfp/families/decoder.hpp>
#include <cfp/program/lower.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace lower_tests {

using namespace cfp;
using assignment_tests::apart, assignment_tests::lowered, assignment_tests::mesh_of, assignment_tests::weights_of;

namespace {

const long cases = how_many(40, 20, 5);
constexpr int steps = 3;

using random_engine = std::mt19937;
int below(random_engine& random, int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); }

std::string words(const std::vector<int>& sizes) {
  std::string s;
  for (int n : sizes) s += (s.empty() ? "" : "x") + std::to_string(n);
  return s;
}

graph tiny_gpt(double dropout = 0) {
  families::transformer c = families::gpt2();
  c.attention_dropout = c.residual_dropout = dropout;
  c.layers = 2;
  c.heads = 4;
  c.width = 16;
  c.vocabulary = 32;
  c.positions = 8;
  c.batch = 4;
  c.sequence = 8;
  graph g = differentiate(refine(families::decoder(c)));
  for (value& v : g.values)  // deviations of a real model: all gradients far from rounding
    if (v.role == value_role::weight) v.fill.deviation = v.fill.deviation == 0 ? 0.1 : 0.3;
  return g;
}

// A partition of a tensor of this shape: axes split any dimension in any order, or owe a sum.
partition some_partition(random_engine& random, const extents& shape, const mesh_shape& mesh, reduction combine,
                         bool may_owe) {
  for (;;) {
    partition p = partition::replicated(shape.size());
    std::vector<int> axes;
    for (int a = 0; a < mesh.rank(); ++a) axes.push_back(a);
    std::shuffle(axes.begin(), axes.end(), random);
    for (int a : axes) {
      if (mesh.size(a) == 1) continue;
      const int choice = below(random, shape.size() + 1 + may_owe);
      if (choice < shape.size()) p.split(choice, a);
      else if (choice > shape.size()) p.partial[a] = {true, combine};
    }
    if (divides(p, shape, mesh)) return p;
  }
}

sharding some_sharding(random_engine& random, const graph& g, const mesh_shape& mesh) {
  sharding s = sharding::replicated(g);
  for (int i = 0; i < g.size(); ++i)
    s.assigned[static_cast<std::size_t>(i)] = assignment_tests::some_admitted(random, g.at(i), mesh);
  for (int v = 0; v < g.value_count(); ++v) {  // some tensors are also materialised
    if (g[v].type == element::index || below(random, 4) != 0) continue;
    for (int k = 1 + below(random, 2); k > 0; --k)
      s.materialised[static_cast<std::size_t>(v)].push(some_partition(random, g[v].shape, mesh, reduction::sum, false));
  }
  return s;
}

struct outcome {
  std::vector<std::vector<double>> loss;       // by rank, then step
  std::vector<std::vector<double>> weights{};  // after the last step
  std::vector<collective_count> sent;          // by rank, counted by the communicators
};

outcome train(backend& on, const program& p, const graph& g) {
  outcome out;
  out.loss.resize(static_cast<std::size_t>(on.mesh().devices()));
  out.sent.resize(out.loss.size());
  const std::vector<int> ids = weights_of(g);
  for (const int v : ids) out.weights.emplace_back(static_cast<std::size_t>(elements(g[v].shape)));
  on.run([&](rank& r) {
    const auto me = static_cast<std::size_t>(r.number());
    r.reset_counted();
    const auto run = r.load(p, g, 5);
    for (int s = 1; s <= steps; ++s) {
      run->step(s, 1);
      out.loss[me].push_back(run->loss());
    }
    out.sent[me] = counted(r);
    for (std::size_t w = 0; w < ids.size(); ++w) run->collect(ids[w], std::span(out.weights[w]));
  });
  return out;
}

// First and last instruction that touches the memory of each buffer, found here from the instructions alone.
struct use {
  int from = -1, to = -1;
};
std::vector<use> uses(const program& p) {
  std::vector<use> out(p.buffers.size());
  const auto touch = [&](int b, int at) {
    int root = b;
    while (p[root].root != root) root = p[root].root;
    use& u = out[static_cast<std::size_t>(root)];
    if (u.from < 0) u.from = at;
    u.to = at;
  };
  const int end = static_cast<int>(p.code.size());
  for (int i = 0; i < end; ++i) {
    for (int b : p.code[static_cast<std::size_t>(i)].in) touch(b, i);
    for (int b : p.code[static_cast<std::size_t>(i)].out) touch(b, i);
  }
  if (p.loss >= 0) touch(p.loss, end);
  return out;
}

// Buffers whose memory is shared though both are needed, misplaced or missing; and the largest sum of live
// bytes.
struct memory_report {
  int overlapping = 0, misplaced = 0, chained = 0;
  long live = 0;
};
memory_report inspect(const program& p) {
  memory_report out;
  const std::vector<use> life = uses(p);
  std::vector<int> roots;
  for (std::size_t b = 0; b < p.buffers.size(); ++b) {
    const buffer& x = p.buffers[b];
    if (p[x.root].root != x.root) ++out.chained;
    if (x.root != static_cast<int>(b) || x.persistent || life[b].from < 0) continue;
    roots.push_back(static_cast<int>(b));
    if (x.offset < 0 || x.offset % memory_alignment != 0 || x.offset + x.bytes > p.arena_bytes) ++out.misplaced;
  }
  for (std::size_t i = 0; i < roots.size(); ++i)
    for (std::size_t k = 0; k < i; ++k) {
      const buffer &a = p[roots[i]], &b = p[roots[k]];
      const use &x = life[static_cast<std::size_t>(roots[i])], &y = life[static_cast<std::size_t>(roots[k])];
      const bool together = x.from <= y.to && y.from <= x.to;
      const bool shared = a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
      out.overlapping += together && shared;
    }
  for (int t = 0; t <= static_cast<int>(p.code.size()); ++t) {
    long live = 0;
    for (int b : roots)
      if (life[static_cast<std::size_t>(b)].from <= t && t <= life[static_cast<std::size_t>(b)].to) live += p[b].bytes;
    out.live = std::max(out.live, live);
  }
  return out;
}

void check_trainings(const std::vector<int>& sizes, unsigned seed) {
  const graph g = tiny_gpt();
  const program single = lowered(g, mesh_of({1}), sharding::replicated(g));
  const mesh_shape mesh = mesh_of(sizes);
  const auto one = threads(mesh_of({1}), number::float64), all = threads(mesh, number::float64);
  const outcome alone = train(*one, single, g);
  REQUIRE(alone.loss[0].size() == steps);
  REQUIRE(alone.loss[0][0] != alone.loss[0][2]);
  for (int n = 0; n < cases; ++n) {
    random_engine random(seed + static_cast<unsigned>(n));
    INFO("mesh " << words(sizes) << ", seed " << seed + static_cast<unsigned>(n));
    const program p = lowered(g, mesh, some_sharding(random, g, mesh));
    const memory_report memory = inspect(p);
    CHECK(memory.overlapping == 0);
    CHECK(memory.misplaced == 0);
    CHECK(memory.chained == 0);
    CHECK(p.arena_bytes >= memory.live);
    const outcome together = train(*all, p, g);
    collective_count said = count_collectives(p, g);
    for (std::size_t c = 0; c < 5; ++c) said.calls[c] *= steps, said.bytes[c] *= steps;
    for (std::size_t rank = 0; rank < together.loss.size(); ++rank) {
      CHECK(apart(alone.loss[0], together.loss[rank]) <= 1e-9);
      CHECK(together.sent[rank] == said);
    }
    for (std::size_t w = 0; w < alone.weights.size(); ++w) {
      INFO("weight " << w);
      CHECK(apart(alone.weights[w], together.weights[w]) <= 1e-9);
    }
  }
}

}  // namespace

TEST_CASE("any assignment of every operation trains as one rank does") {
  SECTION("two ranks") { check_trainings({2}, 100); }
  SECTION("four ranks on one axis") { check_trainings({4}, 200); }
  SECTION("four ranks on two axes") { check_trainings({2, 2}, 300); }
  SECTION("a mesh axis of size one") { check_trainings({1, 2}, 400); }
}

TEST_CASE("what is computed again for backward is what forward computed, to the bit") {
  const graph g = tiny_gpt(0.1);
  for (const std::vector<int>& sizes : {std::vector{1}, {2}, {2, 2}}) {
    const mesh_shape mesh = mesh_of(sizes);
    const auto all = threads(mesh, number::float32);
    for (unsigned n = 0; n < cases / 4; ++n) {
      random_engine random(500 + n);
      INFO("mesh " << words(sizes) << ", seed " << 500 + n);
      sharding s = some_sharding(random, g, mesh);
      const program kept = lowered(g, mesh, s, sizeof(float));
      for (int o = 0; o < g.size(); ++o)
        s.assigned[static_cast<std::size_t>(o)].recompute = g.at(o).when == phase::forward && (n == 0 || random() % 2);
      const program less = lowered(g, mesh, s, sizeof(float));
      CHECK(std::any_of(less.code.begin(), less.code.end(), [](const instruction& i) { return i.again; }));
      const memory_report memory = inspect(less);
      CHECK(memory.overlapping == 0);
      CHECK(memory.misplaced == 0);
      const outcome one = train(*all, kept, g), other = train(*all, less, g);
      CHECK(one.loss == other.loss);
      CHECK(one.weights == other.weights);
    }
  }
}

TEST_CASE(
    "a chain of n that keeps every k-th result holds n / k + k of them, for one more forward (arXiv 1604.06174)") {
  constexpr int n = 64;
  model net;
  tensor x = net.input("x", {{"any", 4096}}, element::real, {0, 1});
  x = bias(x, net.weight("w", {{"any", 4096}}, {1}));
  for (int i = 0; i < n; ++i) x = gelu(x);
  net.recorded.loss = op<"any -> ">{}(x).id;
  const graph g = differentiate(refine(net.recorded));
  const long unit = 4096 * sizeof(double);
  const auto live = [&](int every) {
    sharding s = sharding::replicated(g);
    int number = 0;
    for (int o = 0; o < g.size(); ++o)
      if (g.at(o).when == phase::forward && g.at(o).op == &info<gelu_t>)
        s.assigned[static_cast<std::size_t>(o)].recompute = ++number % every != 0;
    const program p = lowered(g, mesh_of({1}), s);
    const long again = std::count_if(p.code.begin(), p.code.end(), [](const instruction& i) { return i.again; });
    CHECK(again == n - n / every);
    return static_cast<double>(inspect(p).live) / static_cast<double>(unit);
  };
  for (const int k : {1, 2, 4, 8, 16, 32, 64}) CHECK(live(k) == Approx(n / k + k + 1).margin(0.01));  // and a gradient
}

TEST_CASE("buffers by number are as a vector of them, whichever are kept") {
  for (int n = 0; n <= 9; ++n)
    for (int some = 0; some < 1 << n; ++some) {
      buffer_numbers all;
      for (int b = 0; b < n; ++b) all.push(b);
      all.keep_if([&](int b) { return (some >> b & 1) != 0; });
      std::vector<int> kept;
      for (int b = 0; b < n; ++b)
        if (some >> b & 1) kept.push_back(b);
      CHECK(std::vector<int>(all.begin(), all.end()) == kept);
      for (int b = n; b < n + 6; ++b) all.push(b), kept.push_back(b);
      CHECK(std::vector<int>(all.begin(), all.end()) == kept);
    }
}

TEST_CASE("the arena of one rank holds what is live and little more") {
  const graph g = tiny_gpt();
  const program p = lowered(g, mesh_of({1}), sharding::replicated(g));
  const memory_report memory = inspect(p);
  CHECK(memory.overlapping == 0);
  CHECK(memory.misplaced == 0);
  CHECK(p.arena_bytes >= memory.live);
  CHECK(static_cast<double>(p.arena_bytes) <= 1.25 * static_cast<double>(memory.live));
}

namespace {

// One tensor, given in one partition and converted to another by a lowered program, on real ranks. Its
// elements are whole numbers, so every result is exact.
struct conversion_case {
  extents shape;
  mesh_shape mesh;
  partition from, to;
};

int owing_position(const partition& p, const mesh_shape& mesh, int device) {
  int at = 0;
  for (int a = 0; a < mesh.rank(); ++a)
    if (p.partial[a].owed) at = at * mesh.size(a) + mesh.coordinate(device, a);
  return at;
}
int owing_count(const partition& p, const mesh_shape& mesh) {
  int n = 1;
  for (int a = 0; a < mesh.rank(); ++a)
    if (p.partial[a].owed) n *= mesh.size(a);
  return n;
}

template <class Combine>
std::string converted(rank_pool& pool, const conversion_case& c, Combine&& combine, double identity,
                      random_engine& random, known_conversions& ways, long& bytes_over) {
  graph g;
  value v;
  v.label = "tensor";
  v.shape = c.shape;
  for (int d = 0; d < c.shape.size(); ++d) v.dims.push("dim"), v.group.push(static_cast<signed char>(d));
  v.role = value_role::weight;
  g.add(v);
  const sharding none = sharding::replicated(g);
  cfp::detail::lowerer l{{g, c.mesh, none, sizeof(double), &ways}, false};
  l.out.mesh = c.mesh;
  l.make_room(all_operations(g), {});
  const int given = l.keep(0, l.allocate(0, c.from, element::real, true));
  const int got = l.convert_to(0, given, c.to);
  program p = l.out;
  p.real_bytes = sizeof(double);
  plan_memory(p);

  const long n = elements(c.shape);
  const int parts = owing_count(c.from, c.mesh);
  std::vector<std::vector<double>> part(static_cast<std::size_t>(parts),
                                        std::vector<double>(static_cast<std::size_t>(n)));
  for (auto& x : part)
    for (double& e : x) e = below(random, 2001) - 1000;
  std::vector<double> whole(static_cast<std::size_t>(n), identity);
  for (const auto& x : part)
    for (std::size_t i = 0; i < whole.size(); ++i) whole[i] = combine(whole[i], x[i]);

  std::vector<std::vector<double>> held(static_cast<std::size_t>(pool.size()));
  std::vector<collective_count> sent(held.size());
  pool.run([&](rank_context& rank) {
    const auto me = static_cast<std::size_t>(rank.rank);
    open_engine<double> run(p, g, rank, 1);
    double* const in = run.at(given);
    const auto& mine = part[static_cast<std::size_t>(owing_position(c.from, c.mesh, rank.rank))];
    each_element(c.shape, c.from, c.mesh, rank.rank,
                 [&](long i, long global) { in[i] = mine[static_cast<std::size_t>(global)]; });
    run->step(1, 1);
    const double* const out = run.at(got);
    held[me].assign(out, out + elements(local_shape(c.to, c.shape, c.mesh)));
    each_element(c.shape, c.from, c.mesh, rank.rank, [&](long i, long global) {
      if (in[i] != mine[static_cast<std::size_t>(global)]) held[me].clear();  // the source must stay as it is
    });
    for (int group = 0; group < rank.groups(); ++group)
      for (std::size_t x = 0; x < 5; ++x) {
        sent[me].calls[x] += static_cast<long>(rank.group(group).counted().calls[x]);
        sent[me].bytes[x] += static_cast<long>(rank.group(group).counted().bytes[x]);
      }
  });

  const collective_count said = count_collectives(p, g);
  bytes_over = said.total_bytes() - convert(c.from, c.to, c.shape, sizeof(double), c.mesh).bytes;
  for (const collective_count& s : sent)
    if (!(s == said)) return "the communicators counted something else";
  // Sums over the ranks that owe each other parts must be the tensor; ranks that owe none hold it itself.
  for (int device = 0; device < c.mesh.devices(); ++device) {
    const auto me = static_cast<std::size_t>(device);
    std::string wrong;
    each_element(c.shape, c.to, c.mesh, device, [&](long i, long global) {
      double sum = identity;
      for (int other = 0; other < c.mesh.devices(); ++other) {
        bool partner = true;
        for (int a = 0; a < c.mesh.rank(); ++a)
          partner = partner && (c.to.partial[a].owed || c.mesh.coordinate(other, a) == c.mesh.coordinate(device, a));
        if (!partner) continue;
        const auto& theirs = held[static_cast<std::size_t>(other)];
        if (theirs.size() != held[me].size() || theirs.empty()) wrong = "a source was overwritten";
        else sum = combine(sum, theirs[static_cast<std::size_t>(i)]);
      }
      if (sum != whole[static_cast<std::size_t>(global)])
        wrong = "rank " + std::to_string(device) + " holds something else";
    });
    if (!wrong.empty()) return wrong;
  }
  return "";
}

std::string words(const partition& p) {
  std::string s;
  for (const auto& d : p.dims) {
    s += "[";
    for (signed char a : d) s += std::to_string(static_cast<int>(a));
    s += "]";
  }
  for (int a = 0; a < max_axes; ++a)
    if (p.partial[a].owed) s += "+" + std::to_string(a);
  return s;
}

// Gathering everything, then slicing: what any conversion can be done with.
long naive_bytes(const conversion_case& c) {
  const partition all = partition::replicated(c.shape.size());
  return convert(c.from, all, c.shape, sizeof(double), c.mesh).bytes +
         convert(all, c.to, c.shape, sizeof(double), c.mesh).bytes;
}

}  // namespace

TEST_CASE("conversions deliver what the partitions mean") {
  const auto sum = [](double a, double b) { return a + b; };
  const auto max = [](double a, double b) { return a > b ? a : b; };
  constexpr double lowest = -std::numeric_limits<double>::infinity();
  random_engine random(7);
  for (const std::vector<int>& sizes :
       std::vector<std::vector<int>>{{2}, {4}, {3}, {2, 2}, {2, 3}, {1, 4}, {2, 2, 2}}) {
    rank_pool pool(sizes);
    pool.set_deadline(std::chrono::minutes(1));
    const mesh_shape mesh = mesh_of(sizes);
    known_conversions by_bytes, along_several(&links_alike);  // the latter: collectives along several axes at once too
    long calls[2]{};
    for (int n = 0; n < 10 * cases; ++n) {
      conversion_case c{{}, mesh, {}, {}};
      for (int d = below(random, 4); d > 0; --d) c.shape.push(12 * (1 + below(random, 2)) / (d == 3 ? 2 : 1));
      const bool largest = n % 8 == 7;
      c.from = some_partition(random, c.shape, mesh, largest ? reduction::max : reduction::sum, true);
      c.to = some_partition(random, c.shape, mesh, reduction::sum, !largest);
      INFO("mesh " << words(sizes) << ", from " << words(c.from) << " to " << words(c.to)
                   << (largest ? " by max" : ""));
      long over = 0;
      CHECK(convert(c.from, c.to, c.shape, sizeof(double), mesh).possible);
      known_conversions& ways = n % 3 == 0 ? by_bytes : along_several;
      const std::string why = largest ? converted(pool, c, max, lowest, random, ways, over)
                                      : converted(pool, c, sum, 0, random, ways, over);
      CHECK(why == "");
      CHECK((n % 3 == 0 ? over == 0 : over <= 0));
      calls[0] += by_bytes(c.shape, sizeof(double), mesh, c.from, c.to).collectives();
      calls[1] += along_several(c.shape, sizeof(double), mesh, c.from, c.to).collectives();
      CHECK(convert(c.from, c.to, c.shape, sizeof(double), mesh).bytes <= naive_bytes(c));
      // Converted, nothing is left to do.
      CHECK(convert(c.to, c.to, c.shape, sizeof(double), mesh).steps.empty());
    }
    const bool several = std::count(sizes.begin(), sizes.end(), 1) + 1 < static_cast<long>(sizes.size());
    CHECK((several ? calls[1] < calls[0] : calls[1] == calls[0]));
  }
}

TEST_CASE("conversions on four axes are found, and never send more than gathering everything") {
  random_engine random(8);
  for (int n = 0; n < 20; ++n) {
    conversion_case c{{{16, 16, 16, 16}, 4}, mesh_of({2, 2, 2, 2}), {}, {}};
    c.from = some_partition(random, c.shape, c.mesh, reduction::sum, true);
    c.to = some_partition(random, c.shape, c.mesh, reduction::sum, true);
    INFO("from " << words(c.from) << " to " << words(c.to));
    const conversion found = convert(c.from, c.to, c.shape, sizeof(double), c.mesh);
    REQUIRE(found.possible);
    CHECK(found.bytes <= naive_bytes(c));
  }
}

}  // namespace lower_tests
