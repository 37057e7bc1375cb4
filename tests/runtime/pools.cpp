// Stages on pools of different devices: Rethinking Dynamic Networks and Heterogeneous Computing (arXiv 2506.02787) and
// Astra's heterogeneous pipelines (arXiv 2502.13480).
#include "../catch.hpp"

#include "found_stages.hpp"

#include <cfp/model/checked.hpp>
#include <cfp/plan/least_step.hpp>
#include <cfp/plan/stages/staged_search.hpp>
#include <cfp/session/session.hpp>

#include <algorithm>
#include <cstdio>
#include <limits>

namespace pools_tests {

using namespace cfp;
using namespace small_tests;
using found_stages_tests::some_machine;

namespace {

graph layers_of(int layers, long rows, int micro_batches) {
  families::transformer c = tiny_config();
  c.layers = layers, c.batch = rows, c.sequence = 64, c.vocabulary = 32;
  return differentiate(refine(families::decoder(c)), in_micro_batches({}, micro_batches));
}
graph_of_rows model(int layers) {
  return [=](long rows, int micro_batches) { return layers_of(layers, rows, micro_batches); };
}

staged_options in_float() {
  staged_options o;
  o.machine.lowered_for = 4;
  o.chunks = {1}, o.split_backward = false;
  return o;
}

// Devices that are so many times as fast as others, in arithmetic and memory.
machine of_speed(double times, int devices) {
  machine m = plain_machine(mesh_of({devices}), 1e9 * times, 1e9 * times, 1e-9, {{1e-6, 2e9}});
  m.name = "times " + std::to_string(static_cast<int>(times));
  m.device.memory = 1l << 40;
  return m;
}
interconnect links() { return plain_machine(mesh_of({2}), 1, 1, 0, {{1e-6, 2e9}}).levels[0]; }

// How many layers each place has, by their activations.
std::vector<int> layers_of_stages(const staged_plan& p, int layers) {
  const graph g = layers_of(layers, p.rows, p.micro_batches);
  std::vector<int> out(static_cast<std::size_t>(p.layout.places));
  for (int o = 0; o < g.size(); ++o) {
    if (g.at(o).when != phase::forward || g.at(o).op->label.find("gelu") == std::string_view::npos) continue;
    const auto behind = std::upper_bound(p.layout.first.begin(), p.layout.first.end(), o);
    ++out[static_cast<std::size_t>(behind - p.layout.first.begin())];
  }
  return out;
}

}  // namespace

TEST_CASE("Rethinking: equal pools with the same links give the answer of one machine", "[heavy]") {
  const machine whole = some_machine();  // of 4
  const machine half = innermost(whole, 2);
  for (const std::vector<int>& places : {std::vector<int>{2}, std::vector<int>{4}}) {
    staged_options o = in_float();
    o.places = places;
    interconnect between = half.levels[0];
    between.bandwidth *= 4.0 / places[0];  // each rank of a place has its own link
    const std::optional<staged_plan> one = search_stages(model(4), 16, whole, o),
                                     two = search_stages(model(4), 16, {{half, half}, between}, o);
    REQUIRE(one);
    REQUIRE(two);
    CHECK(two->price.ms == Approx(one->price.ms).epsilon(1e-9));
    CHECK(two->price.peaks == one->price.peaks);
    CHECK(two->ends == one->ends);
    CHECK(two->micro_batches == one->micro_batches);
    CHECK(two->layout.pools.size() == static_cast<std::size_t>(places[0]));
  }
}

TEST_CASE("Rethinking: a pool that is twice as fast gets twice the layers, within one") {
  for (const int layers : {9, 12}) {
    staged_options o = in_float();
    o.places = {2}, o.micro_batches = 8;
    const std::optional<staged_plan> p =
        search_stages(model(layers), 16, {{of_speed(2, 1), of_speed(1, 1)}, links()}, o);
    REQUIRE(p);
    const std::vector<int> shares = layers_of_stages(*p, layers);
    const std::size_t fast = p->layout.pools[0] == 0 ? 0 : 1;
    CAPTURE(layers, shares[0], shares[1]);
    CHECK(shares[0] + shares[1] == layers);
    CHECK(std::abs(shares[fast] - 2 * layers / 3) <= 1);
    // No less than what both can do together takes.
    const graph g = layers_of(layers, p->rows, p->micro_batches);
    CHECK(p->price.ms >= least_step_ms(on_one_device(g, 4), g, of_speed(1, 1).device, 1) / 3);
  }
}

TEST_CASE("stages in pools fit the memory of each", "[heavy]") {
  const auto searched = [&](long first, long second) {
    machine a = of_speed(2, 2), b = of_speed(1, 2);
    a.device.memory = first, b.device.memory = second;
    staged_options o = in_float();
    o.places = {4}, o.micro_batches = 8;
    return search_stages(model(6), 16, {{a, b}, links()}, o);
  };
  const std::optional<staged_plan> free = searched(1l << 40, 1l << 40);
  REQUIRE(free);
  const long peak = free->price.peak;
  int fits = 0;
  for (const double share : {0.8, 0.5}) {
    const long small = std::lround(share * static_cast<double>(peak));
    for (const bool is_first : {true, false}) {
      const std::optional<staged_plan> p = is_first ? searched(small, 1l << 40) : searched(1l << 40, small);
      if (!p) continue;
      ++fits;
      for (std::size_t place = 0; place < 4; ++place)
        if ((p->layout.pools[place] == 0) == is_first) CHECK(p->price.peaks[place] <= small);
      CHECK(p->price.ms >= free->price.ms * (1 - 1e-9));
    }
  }
  CHECK(fits > 1);
  CHECK(!searched(1000, 1l << 40));
}

TEST_CASE("a plan in pools says where its stages lie, where its time goes, and trains as one rank does", "[heavy]") {
  machine_plan_options o;
  o.type = number::float32;
  o.unfused = true, o.micro_batches = 4;
  const machine_pools both{{of_speed(2, 2), of_speed(1, 2)}, links()};
  std::string why;
  const std::optional<stages_plan> p = plan_in_stages(found_stages_tests::model_of, 16, both, o, {2}, &why);
  REQUIRE(p);
  CHECK(p->machine == "2 of times 2 + 2 of times 1");
  CHECK(p->devices == 4);
  CHECK(p->stages[0].pool != p->stages[1].pool);
  std::ostringstream said;
  said << *p << p->explain() << p->json();
  CHECK(said.str().find("times 2  ") != std::string::npos);
  CHECK(said.str().find("\"pool\": \"times 1\"") != std::string::npos);
  for (const std::vector<time_term>& place : p->terms()) {
    double sum = 0;
    for (const time_term& t : place) sum += t.ms;
    CHECK(sum == Approx(p->plan.price.ms));
  }
  CHECK(!p->report().decisions.empty());
  const std::string path = "plan_in_pools.json";
  p->save_plan(path);
  session_options of_ranks;
  of_ranks.mesh = to_string(p->plan.layout.whole()), of_ranks.micro_batches = p->plan.micro_batches;
  session s(found_stages_tests::model_of(p->plan.rows), of_ranks);
  CHECK(s.use_plan(path).best.choices == p->plan.choices);
  const verification v = s.verify(families::byte_text(some_text(), p->plan.rows, 64, 5, {}), 3);
  INFO(v.json());
  CHECK(v.holds());
  std::remove(path.c_str());
}

TEST_CASE("what pools cannot be is said") {
  const machine m = of_speed(1, 2);
  CHECK_THROWS_AS(machine_pools({}, links()), bad_input);
  const machine_pools two{{m, m}, links()};
  CHECK_THROWS_AS(placed_pools(two, mesh_of({1}), 3, {0, 1, 0}), bad_input);
  CHECK_THROWS_AS(placed_pools(two, mesh_of({1}), 2, {0}), bad_input);
  CHECK_THROWS_AS(placed_pools(two, mesh_of({1}), 2, {0, 2}), bad_input);
  CHECK_THROWS_AS(placed_pools(two, mesh_of({2}), 3, {0, 0, 1}), bad_input);
}

}  // namespace pools_tests
