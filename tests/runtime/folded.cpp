// A graph in which layers stand for many is planned as the one that has them all.
#include "../catch.hpp"

#include "deep_families.hpp"
#include "small.hpp"

#include <cfp/model/checked.hpp>
#include <cfp/plan/mesh_plans.hpp>
#include <cfp/plan/usual_plans.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <random>
#include <span>

namespace folded_tests {

using namespace cfp;
using namespace deep_families;

namespace {

constexpr std::size_t families = few_if_slow(1);

struct planned {
  planned(const family& f, long layers, bool folded, const mesh_shape& mesh)
      : name(f.name), g(differentiate(f.forward(layers * f.period, folded))), whole(g),
        d(decisions(g, whole.blocks, mesh, axis_choice::regathered)) {}

  const std::string name;
  const graph g;
  const cfp::detail::planned_graph whole;
  const decision_graph d;
};

// Of each decision of all layers, the one that stands for it among few.
std::vector<int> standing_for(const planned& all, const planned& few) {
  using key = std::pair<int, int>;  // a segment, and which of its decisions; or none, and which of these
  const auto keys = [](const planned& p) {
    std::map<int, int> seen;
    std::vector<key> out;
    for (const decision& n : p.d.nodes) {
      const int s = cfp::detail::segment_of(n, p.whole.again);
      out.emplace_back(s, seen[s]++);
    }
    return out;
  };
  std::vector<int> segment_of;  // of few, by those of all
  for (std::size_t s = 0; s < few.whole.again.times.size(); ++s)
    for (long n = 0; n < few.whole.again.times[s]; ++n) segment_of.push_back(static_cast<int>(s));
  REQUIRE(segment_of.size() == all.whole.again.times.size());
  std::map<key, int> at;
  const std::vector<key> of_few = keys(few);
  for (std::size_t n = 0; n < of_few.size(); ++n) at[of_few[n]] = static_cast<int>(n);
  std::vector<int> out;
  for (const key& k : keys(all))
    out.push_back(at.at({k.first < 0 ? -1 : segment_of[static_cast<std::size_t>(k.first)], k.second}));
  return out;
}

}  // namespace

TEST_CASE("of many layers few are written, and all are counted") {
  for (const long n : {1, 12, 199, 200, 201, 1000, 10000, 1000003}) {
    long next = 0;
    for (const layer_copy& c : written_layers(n, true)) {
      CHECK(c.number == next);
      CHECK(c.times >= 1);
      next += c.times;
    }
    CHECK(next == n);
    CHECK(written_layers(n, true).size() == (n < 200 ? static_cast<std::size_t>(n) : 40));
    if (n <= 1000) CHECK(written_layers(n, false).size() == static_cast<std::size_t>(n));
  }
}

TEST_CASE("where layers stand for many, sums of parts are those of all layers") {
  std::mt19937 random(3);
  const mesh_shape mesh = small_tests::mesh_of({2, 2});
  const machine m = plain_machine(mesh, 1e12, 1e11, 5e-6, {{1e-5, 1e9}, {1e-5, 1e11}});
  for (const family& f : std::span(known_families).first(families)) {
    INFO(f.name);
    const planned all(f, 200, false, mesh), few(f, 200, true, mesh);
    CHECK(few.g.size() < all.g.size() / 3);
    const std::vector<int> of = standing_for(all, few);
    const tied_nodes tied = folded_decisions(few.d, few.whole.again);
    const cost_graph sums = roofline(all.g, mesh, all.d, m).build(),
                     of_sets = tied(roofline(few.g, mesh, few.d, m).build());
    for (int n = 0; n < 20; ++n) {
      std::vector<int> sets;
      for (const cost_node& set : of_sets.nodes) sets.push_back(static_cast<int>(random() % set.time.size()));
      const std::vector<int> of_few = tied.of_nodes(sets);
      CHECK(tied.of_sets(of_few) == sets);
      std::vector<int> choices;
      for (const int node : of) choices.push_back(of_few[static_cast<std::size_t>(node)]);
      const plan_cost by_few = evaluate(of_sets, sets), by_all = evaluate(sums, choices);
      CHECK(by_few.time == Approx(by_all.time).epsilon(1e-9));
      // What all layers add to, the balance of experts and the gradient of T5's table of distances, keeps what those
      // that are written give.
      const double added = few.name == "t5" ? 0.05 : few.name == "mixtral" || few.name == "gshard" ? 1e-5 : 0;
      const auto memory = static_cast<double>(by_all.memory);
      CHECK(std::abs(static_cast<double>(by_few.memory) - memory) <= added * memory);
    }
  }
}

TEST_CASE("where layers stand for many, plans people use take what those of all layers do") {
  const mesh_shape mesh = small_tests::mesh_of({4});
  const machine m = plain_machine(mesh, 1e12, 1e11, 5e-6, {{1e-5, 1e10}});
  for (const family& f : std::span(known_families).first(families)) {
    const planned all(f, 200, false, mesh), few(f, 200, true, mesh);
    machine_options options;
    options.memory = 1L << 50;
    machine_search of_all(all.g, mesh, all.d, m, options, &all.whole.again),
        of_few(few.g, mesh, few.d, m, options, &few.whole.again);
    for (const char* const name : {"data_parallel", "zero3", "tensor"}) {
      INFO(f.name << ", " << name);
      const std::vector<named_plan> usual = usual_plans(mesh, false);
      const auto plan = std::find_if(usual.begin(), usual.end(), [&](const named_plan& n) { return n.name == name; });
      const std::optional<evaluated> a = of_all.usual(*plan), b = of_few.usual(*plan);
      REQUIRE((a && b));
      CHECK(b->when.ms == Approx(a->when.ms).epsilon(1e-3));
      CHECK(static_cast<double>(b->peak) == Approx(static_cast<double>(a->peak)).epsilon(0.06));
    }
  }
}

TEST_CASE("where layers stand for many, the plan that is found is that of all layers", "[heavy]") {
  const mesh_shape mesh = small_tests::mesh_of({2, 2});
  const machine m = plain_machine(mesh, 1e12, 1e11, 5e-6, {{1e-5, 1e9}, {1e-5, 1e11}});
  for (const family& f : std::span(known_families).first(std::min<std::size_t>(families, 2))) {
    INFO(f.name);
    const planned all(f, 200, false, mesh), few(f, 200, true, mesh);
    machine_options options;
    options.memory = 1L << 50;
    const auto found = [&](const planned& p) {
      return machine_search(p.g, mesh, p.d, m, options, &p.whole.again).compare();
    };
    const priced_plans of_all = found(all), of_few = found(few);
    REQUIRE(of_few.usual.size() == of_all.usual.size());
    REQUIRE(of_few.found() != nullptr);
    CHECK(of_few.found()->when.ms == Approx(of_all.found()->when.ms).epsilon(1e-3));
    CHECK(!of_few.found()->p.code.code.empty());
    options.memory = static_cast<long>(0.7 * static_cast<double>(of_all.found()->peak));
    const priced_plans lean = found(all), lean_few = found(few);
    REQUIRE((lean.found() != nullptr) == (lean_few.found() != nullptr));
    if (lean.found() != nullptr) CHECK(lean_few.found()->when.ms == Approx(lean.found()->when.ms).epsilon(0.01));
  }
}

TEST_CASE("what stands for many layers is not run") {
  const graph g = known_families[0].forward(300, true);
  CHECK_THROWS_WITH(cfp::detail::check_runs(g),
                    Catch::Contains("'h.6.ln_1.norm_sum' stands for") && Catch::Contains("make it without `folded`"));
  CHECK_NOTHROW(cfp::detail::check_runs(known_families[0].forward(20, true)));
}

}  // namespace folded_tests
