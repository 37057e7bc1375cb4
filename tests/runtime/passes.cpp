// In how many micro-batches, and meshes that are one another in another order.
#include "../catch.hpp"

#include "small.hpp"

#include <cfp/plan/passes_search.hpp>
#include <cfp/session/plan_for.hpp>

#include <map>
#include <random>

namespace passes_tests {

using namespace cfp;
using namespace small_tests;

namespace {

constexpr long rows = 8;

graph model(long some) {
  families::transformer c = tiny_config();
  c.batch = some, c.layers = 2, c.sequence = 64, c.vocabulary = 64;
  return families::decoder(c);
}

machine_plan_options in_float() {
  machine_plan_options o;
  o.type = number::float32;
  return o;
}

double fastest_of(const machine_plan& p) {
  return p.fits() ? p.meshes.front().fastest()->ms : std::numeric_limits<double>::infinity();
}

}  // namespace

TEST_CASE("the number of micro-batches is that of which the fastest plan takes least", "[heavy]") {
  std::mt19937 random(11);
  const auto between = [&](double least, double most) { return std::uniform_real_distribution<>(least, most)(random); };
  int in_one = 0, in_more = 0, none = 0;
  for (int n = 0; n < 6; ++n) {
    const machine m = plain_machine(mesh_of({n % 4 == 0 ? 4 : 2}), between(1e7, 1e9), between(1e8, 1e9),
                                    n < 3 ? 1e-7 : 1e-4, {{1e-7, between(1e8, 1e9)}});
    machine_plan_options o = in_float();
    if (n % 2 > 0) o.recompute = recomputing::none;
    o.memory = std::lround(std::exp(between(std::log(1.5e6), std::log(6e6))));
    CAPTURE(n, o.memory);
    std::map<int, double> of_each;
    double least = std::numeric_limits<double>::infinity();
    for (const int passes : doubled_passes(rows)) {
      o.micro_batches = passes;
      least = std::min(least, of_each[passes] = fastest_of(plan_for(model, rows, m, o)));
    }
    o.micro_batches = 0;
    const machine_plan found = plan_for(model, rows, m, o);
    CHECK(fastest_of(found) == least);
    none += !found.fits();
    if (!found.fits()) continue;
    (found.micro_batches == 1 ? in_one : in_more) += 1;
    CHECK(of_each[found.micro_batches] == least);
    CHECK(found.best.code.passes == found.micro_batches);
    CHECK(found.trained == (found.micro_batches > 1 ? " micro_batches=" + std::to_string(found.micro_batches) : ""));
    for (const machine_plan::pieces& x : found.passes) CHECK(x.ms >= least);
    // Beyond what it takes nobody asks; just within it is found again.
    o.within = least * 1.01;
    CHECK(fastest_of(plan_for(model, rows, m, o)) == least);
  }
  CHECK(in_one > 0);
  CHECK(in_more > 0);
  CHECK(none > 0);
}

TEST_CASE("1, 2, 4 and more micro-batches are of whole rows") {
  CHECK(doubled_passes(1) == std::vector<int>{1});
  CHECK(doubled_passes(12) == std::vector<int>{1, 2, 4});
  CHECK(doubled_passes(16) == std::vector<int>{1, 2, 4, 8, 16});
}

TEST_CASE("a number of micro-batches that cannot be is refused, in words") {
  const machine m = plain_machine(mesh_of({2}));
  machine_plan_options o = in_float();
  o.micro_batches = 3;
  CHECK_THROWS_WITH(plan_for(model, rows, m, o), Catch::Contains("8 rows of a step cannot be cut into 3"));
  CHECK_THROWS_WITH(plan_for(model, 0, m, o), Catch::Contains("rows of a step must be 1 or more"));
  o.micro_batches = 0;
  CHECK_THROWS_WITH(plan_for(model(rows), m, o), Catch::Contains("give the model by rows"));
  o.micro_batches = -1;
  CHECK_THROWS_WITH(plan_for(model, rows, m, o), Catch::Contains("micro_batches must be at least 1"));
}

TEST_CASE("a mesh in another order has the same plans where links do not tell its axes apart", "[heavy]") {
  const graph g = differentiate(refine(model(32)));
  const machine one_level = plain_machine(mesh_of({8}), 1e10, 1e10, 1e-7, {{1e-7, 1e10}});
  const machine two_levels = plain_machine(mesh_of({2, 4}), 1e10, 1e10, 1e-7, {{1e-7, 1e10}, {1e-6, 1e9}});
  CHECK(cfp::detail::are_turned(one_level, mesh_of({2, 4}), mesh_of({4, 2})));
  CHECK(!cfp::detail::are_turned(one_level, mesh_of({2, 4}), mesh_of({2, 4})));
  CHECK(!cfp::detail::are_turned(two_levels, mesh_of({2, 4}), mesh_of({4, 2})));
  const mesh_plans whole = std::move(search_meshes(g, one_level, {}, {mesh_of({4, 2})}).front());
  machine_options o;
  o.memory = std::lround(0.85 * static_cast<double>(whole.plans.found()->peak));
  const mesh_plans alone = std::move(search_meshes(g, one_level, o, {mesh_of({4, 2})}).front());
  REQUIRE(alone.plans.found() != nullptr);
  CHECK(alone.plans.limited);
  for (const mesh_plans& on : search_meshes(g, one_level, o, {mesh_of({2, 4}), mesh_of({4, 2})})) {
    CAPTURE(sizes_text(on.mesh));
    const evaluated* const best = on.plans.found();
    REQUIRE(best != nullptr);
    CHECK(on.plans.limited);
    CHECK(on.ms() == Approx(alone.ms()).epsilon(1e-3));
    CHECK(on.plans.free_ms == Approx(whole.plans.free_ms).epsilon(1e-3));
    machine_search again(g, on.mesh, on.decisions, one_level, o);
    CHECK(again.evaluate("again", best->p.choices, best->order).when.ms == best->when.ms);
    if (on.mesh.size(0) != 4) continue;  // the other is searched, this one has what was found there
    for (const std::vector<evaluated> priced_plans::*some : {&priced_plans::usual, &priced_plans::alpa}) {
      REQUIRE((on.plans.*some).size() == (alone.plans.*some).size());
      for (std::size_t n = 0; n < (on.plans.*some).size(); ++n) {
        CHECK((on.plans.*some)[n].p.name == (alone.plans.*some)[n].p.name);
        CHECK((on.plans.*some)[n].when.ms == Approx((alone.plans.*some)[n].when.ms).epsilon(1e-9));
      }
    }
  }
}

}  // namespace passes_tests
