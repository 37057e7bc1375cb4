// Stages that are searched for: what runs of segments take, and plans that fit, train as one rank does, and are no
// slower than what people use.
#include "../catch.hpp"

#include "../from_environment.hpp"

#include "small.hpp"

#include <cfp/backend/cuda/fusions.hpp>
#include <cfp/plan/stages/equal_ends.hpp>
#include <cfp/plan/stages/staged_search.hpp>
#include <cfp/plan/usual_plans.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <random>

namespace staged_search_tests {

using namespace cfp;
using namespace small_tests;

namespace {

graph model_of(long rows, int micro_batches) {
  families::transformer c = tiny_config();
  c.layers = 4, c.batch = rows, c.sequence = 64;
  training how;
  how.micro_batches = micro_batches;
  how.clip = 1;
  return differentiate(refine(families::decoder(c)), how);
}

// Slow enough that arithmetic takes longer than starting it.
machine some_machine(int devices) {
  machine m = plain_machine(mesh_of({devices}), 1e9, 1e9, 1e-7, {{1e-6, 2e8}});
  m.device.memory = 1l << 40;
  return m;
}

staged_options in_double() {
  staged_options o;
  o.machine.lowered_for = sizeof(double);
  o.chunks = {1, 2};
  return o;
}

// What people do: as many layers for each place, rows of a micro-batch split over its ranks, 1F1B.
staged_price in_equal_stages(const machine& m, const mesh_shape& inside, int places, int micro_batches) {
  const graph g = model_of(16 / micro_batches, micro_batches);
  const block_structure blocks = parallel_blocks(g);
  const repeats again(g, blocks);
  staged_layout layout{inside, places, 1, "1f1b", {}};
  const std::vector<int> ends = equal_ends(segments(g, blocks), places);
  for (int s = 0; s + 1 < places; ++s)
    layout.first.push_back(again.operations[static_cast<std::size_t>(ends[static_cast<std::size_t>(s)])].front());
  const decision_graph d = decisions(g, blocks, inside);
  machine_search search(g, inside, d, innermost(m, inside.devices()), in_double().machine);
  const std::optional<evaluated> e = search.usual(usual_plans(inside, false).front());  // data parallel
  REQUIRE(e);
  const described_prices prices(m, with_stages(inside, places));
  target on = sizeof(double);
  on.prices = &prices;
  return price_of([&](int passes) { return model_of(16 / micro_batches, passes); }, shard(g, d, e->p.choices), layout,
                  {m}, on, micro_batches);
}

// A model in micro-batches of two rows on two ranks, priced; `less` may compute again what it keeps.
struct priced_runs {
  explicit priced_runs(int micro_batches) : g(model_of(2, micro_batches)) {}

  stage_costs costs_of(const decision_graph& d) const {
    return stage_pricing(g, mesh, d, described_times(m, mesh), sizeof(double)).prices();
  }

  const graph g;
  const mesh_shape mesh = mesh_of({2});
  const machine m = some_machine(2);
  const detail::planned_graph planned{g, sizeof(double)};
  const decision_graph kept = detail::decided(planned, mesh, in_double().machine),
                       less = detail::decided(planned, mesh, in_double().machine, {}, true);
  const stage_segments of_stages{g, segments(g, planned.blocks), planned.again};
  const run_costs of_kept{g, of_stages, kept, costs_of(kept)}, of_less{g, of_stages, less, costs_of(less)},
      of_all{g, of_stages, less, costs_of(less), true};
};

}  // namespace

TEST_CASE("what a run of segments takes as a stage is what its decisions take, and nothing that fits is faster") {
  const int micro_batches = 4;
  const priced_runs runs(micro_batches);
  const run_costs &of_kept = runs.of_kept, &of_less = runs.of_less;
  const decision_graph& less = runs.less;
  const int segments = of_kept.segments();
  std::mt19937 random(5);
  int limited = 0, tried = 0;
  for (const double share : {2.0, 0.7, 0.5}) {  // of what the model takes without a limit
    const run_part all = of_kept.part(0, segments);
    const solution free = solve(all.costs);
    stage_tables::limits within;
    within.micro_batches = micro_batches;
    within.memory = std::lround(share * static_cast<double>(free.memory));
    stage_tables tables(
        of_kept, [&] { return &of_less; }, within);
    for (int first = 0; first < segments; ++first)
      for (int end = first + 1; end <= segments; ++end)
        for (const int held : {1, 2, 3}) {
          CAPTURE(share, first, end, held);
          const std::vector<stage_option>& found = tables.options(first, end, 1, 3);
          const run_part part = runs.of_all.part(first, end);  // with choices that tables leave out
          const cost_graph costs = part.with(held);
          double least = std::numeric_limits<double>::infinity();
          for (const stage_option& o : found) {
            std::vector<int> choices(less.nodes.size(), 0), mine;
            tables.choose(first, end, o.id, choices);
            for (const std::size_t n : of_less.nodes(first, end)) mine.push_back(choices[n]);
            const plan_cost c = evaluate(costs, mine);
            REQUIRE(micro_batches * (o.forward + o.backward) + o.update == Approx(c.time));
            REQUIRE(o.always + held * o.kept == Approx(static_cast<double>(c.memory)));
            if (c.memory <= within.memory) least = std::min(least, c.time);
          }
          limited += found.size() > 1;
          for (int k = 0; k < 100; ++k) {
            std::vector<int> any;
            for (const cost_node& n : costs.nodes) any.push_back(static_cast<int>(random() % n.time.size()));
            const plan_cost c = evaluate(costs, any);
            if (c.memory > within.memory || !(c.time < std::numeric_limits<double>::infinity())) continue;
            ++tried;
            REQUIRE(least <= c.time * (1 + 1e-9));
          }
          cost_graph exact = costs;
          exact.memory_limit = within.memory;
          const solution s = solve(exact);
          REQUIRE(s.feasible == (least < std::numeric_limits<double>::infinity()));
          if (s.feasible) REQUIRE(least == Approx(s.time));
        }
  }
  CHECK(limited > 10);
  CHECK(tried > 1000);
  std::size_t all = 0, left = 0;
  for (const auto& [of, count] : {std::pair(&runs.of_all, &all), std::pair(&of_less, &left)})
    for (const cost_node& n : of->part(0, segments).costs.nodes) *count += n.time.size();
  CHECK(left < all);
}

TEST_CASE("what a bound excludes is no stage of a faster plan") {
  int bounded = 0;
  for (const int micro_batches : {2, 3, 4, 8}) {
    const priced_runs runs(micro_batches);
    const run_costs& of_kept = runs.of_kept;
    const long free = solve(of_kept.part(0, of_kept.segments()).costs).memory;
    for (const int stages : {2, 3})
      for (const double share : {2.0, 0.5, 0.35}) {
        CAPTURE(micro_batches, stages, share);
        stage_tables::limits within;
        within.micro_batches = micro_batches;
        within.memory = std::lround(share * static_cast<double>(free));
        const auto solved = [&](double below) {
          stage_tables tables(
              of_kept, [&] { return &runs.of_less; }, within);
          tables.look_below(below, stages);
          stage_problem p{of_kept.segments(), stages, micro_batches, static_cast<double>(within.memory), {}, {}};
          p.options = [&](int, int first, int end) -> const std::vector<stage_option>& {
            return tables.options(first, end, stages);
          };
          const double ms = best_stages(p, staged_schedule::one_forward_one_backward).ms;
          if (micro_batches >= stages) CHECK(tables.least_ms(stages) <= ms * (1 + 1e-9));
          return std::pair(ms, tables.solved());
        };
        const auto [ms, all] = solved(std::numeric_limits<double>::infinity());
        if (!(ms < std::numeric_limits<double>::infinity())) continue;
        const auto [again, few] = solved(ms * (1 + 1e-9));
        CHECK(again == Approx(ms));
        bounded += few < all;
      }
  }
  CHECK(bounded > 5);
}

TEST_CASE("stages that are found fit, train as one rank does, and are no slower than equal ones whose data is split",
          "[heavy]") {
  long fits = 0;
  for (const double share : {1.0, 0.85}) {
    machine m = some_machine(4);
    if (fits > 0) m.device.memory = std::lround(share * static_cast<double>(fits));
    CAPTURE(share);
    const std::optional<staged_plan> best = search_stages(model_of, 16, m, in_double());
    REQUIRE(best);
    CHECK(best->price.peak <= m.device.memory);
    CHECK(best->bound_ms <= best->sums_ms);
    fits = best->price.peak;
    int others = 0;
    for (const int places : {2, 4})
      for (const int micro_batches : {4, 8, 16}) {
        const mesh_shape inside = mesh_of({4 / places});
        if (16 / micro_batches % inside.devices() != 0 || micro_batches < places) continue;
        const staged_price usual = in_equal_stages(m, inside, places, micro_batches);
        CAPTURE(places, micro_batches);
        if (usual.peak > m.device.memory) continue;
        ++others;
        CHECK(best->price.ms <= usual.ms);
      }
    if (share == 1) CHECK(others > 3);
    const graph g = model_of(best->rows, best->micro_batches);
    const staged_layout& l = best->layout;
    INFO(l.places << " x " << to_string(l.inside) << ", " << l.schedule << ", " << best->micro_batches);
    const described_prices prices(m, with_stages(l.inside, l.places));
    target on = sizeof(double);
    on.prices = &prices;
    const stage_programs p = lower_stages(
        g, l.inside, best->plan, {l.first, l.schedule_of(best->micro_batches), l.costs}, on, {.overlap = true});
    for (const program& one : p.along) CHECK(one.arena_bytes + one.persistent_bytes() <= best->price.peak);
    const families::byte_text text(some_text(), best->rows, 64, 5, {});
    const trained alone = train_on(single(g, sizeof(double)), g, text, 3, 3);
    const auto ranks = threads(p.along[0].mesh, number::float64);
    train_options remember;
    remember.keep_changes = true;
    const difference apart = compare(alone, train(*ranks, p, text, 3, 3, remember), g);
    CHECK(apart.loss <= 1e-10);
    CHECK(apart.parameters <= 1e-7);
  }
}

TEST_CASE("where less memory has a plan in stages more has one, and hardly a slower one", "[heavy]") {
  machine m = some_machine(4);
  staged_options o = in_double();
  o.places = {2};
  long most = 0;
  double least_ms = std::numeric_limits<double>::infinity(), worst = 1;
  int found = 0;
  {
    const std::optional<staged_plan> free = search_stages(model_of, 8, m, o);
    REQUIRE(free);
    most = free->price.peak;
  }
  for (int share = 40; share <= 100; share += 5) {
    m.device.memory = most * share / 100;
    const std::optional<staged_plan> p = search_stages(model_of, 8, m, o);
    CAPTURE(share);
    CHECK((p || found == 0));
    if (!p) continue;
    ++found;
    CHECK(p->price.peak <= m.device.memory);
    worst = std::max(worst, p->price.ms / least_ms);
    least_ms = std::min(least_ms, p->price.ms);
    if (std::getenv("CFP_PRINT")) std::printf("%d%%: %.3f ms, %s\n", share, p->price.ms, p->layout.schedule.c_str());
  }
  CHECK(found >= 6);
  CHECK(worst <= 1.05);
}

TEST_CASE("a plan that lacks memory by programs of more micro-batches is made again of less", "[heavy]") {
  machine m = some_machine(4);
  staged_options o = in_double();
  o.places = {2}, o.micro_batches = 16;
  int again = 0;
  o.tell = [&](const std::string& what) { again += what.starts_with("less memory for"); };
  const std::optional<staged_plan> free = search_stages(model_of, 16, m, o);
  REQUIRE(free);
  for (int share = 70; share <= 75; ++share) {
    m.device.memory = free->price.peak * share / 100;
    const std::optional<staged_plan> p = search_stages(model_of, 16, m, o);
    CAPTURE(share);
    REQUIRE(p);
    CHECK(p->price.peak <= m.device.memory);
  }
  CHECK(again > 0);
}

TEST_CASE("choices that equal stages take make stages nearly as fast as all choices do", "[heavy]") {
  double worst = 1;
  int compared = 0;
  long fits = 0;
  for (const double share : {1.0, 0.7, 0.5}) {
    machine m = some_machine(4);
    if (fits > 0) m.device.memory = std::lround(share * static_cast<double>(fits));
    for (const int places : {2, 4})
      for (const int micro_batches : {4, 8}) {
        CAPTURE(share, places, micro_batches);
        staged_options o = in_double();
        o.chunks = {1}, o.places = {places}, o.most_micro_batches = micro_batches;
        const std::optional<staged_plan> some = search_stages(model_of, 8, m, o);
        o.all_choices = true;
        const std::optional<staged_plan> best = search_stages(model_of, 8, m, o);
        CHECK(some.has_value() == best.has_value());
        if (!some || !best) continue;
        ++compared;
        worst = std::max(worst, some->price.ms / best->price.ms);
        CHECK(best->bound_ms <= some->sums_ms * (1 + 1e-9));
        if (share == 1) fits = std::max(fits, some->price.peak);
      }
  }
  if (std::getenv("CFP_PRINT")) std::printf("%d searches, at most %.2f%% slower\n", compared, 100 * (worst - 1));
  CHECK(compared >= 8);
  CHECK(worst <= 1.005);
}

// Attention in one kernel, and such whose scores are kept.
std::pair<long, long> attention_in(const program& p, const graph& g) {
  std::pair<long, long> out;
  for (const instruction& i : p.code) {
    const bool fused = i.fusion >= 0 && p.fusions[static_cast<std::size_t>(i.fusion)].label == "attention";
    out.first += fused;
    for (const instruction& part : p.parts(i))
      out.second += !fused && i.kind == instruction::compute && g.at(part.op).op == &info<masked_softmax_t>;
  }
  return out;
}

TEST_CASE("what many micro-batches take follows from few, whatever the cut and the choices") {
  const mesh_shape inside = mesh_of({2});
  const auto model = [](int passes) { return model_of(2, passes); };
  const graph g = model(2);
  const decision_graph d = detail::decided(detail::planned_graph(g, sizeof(double)), inside, {}, {}, true);
  std::mt19937 random(11);
  double worst = 0, worst_roughly = 0, most_memory = 1;
  for (long k = how_many(60, 12, 3); k > 0; --k)
    for (const char* const name : {"1f1b", "zb_h1", "interleaved"}) {
      const int places = 2 << random() % 2, chunks = std::string(name) == "interleaved" ? 2 : 1;
      const machine m = some_machine(2 * places);
      const described_prices prices(m, with_stages(inside, places));
      target on = sizeof(double);
      on.prices = &prices;
      staged_layout layout{inside, places, chunks, name};
      layout.first = random_cuts(g, layout.stages(), random);
      const sharding plan = shard(g, d, random_choices(d, random));
      const int many = 8 * places;
      const staged_price from_few = price_of(model, plan, layout, {m}, on, many),
                         roughly = price_of(model, plan, layout, {m}, on, many, true),
                         all = detail::price_programs(model(many), plan, layout, {m}, on).price;
      CAPTURE(name, places, layout.first, from_few.ms, all.ms, from_few.peak, all.peak);
      worst = std::max(worst, std::fabs(from_few.ms / all.ms - 1));
      worst_roughly = std::max(worst_roughly, std::fabs(roughly.ms / all.ms - 1));
      most_memory = std::max(most_memory, static_cast<double>(all.peak) / static_cast<double>(from_few.peak));
      CHECK(from_few.ms == Approx(all.ms).epsilon(0.01));
      CHECK(from_few.idle == Approx(all.idle).margin(0.01));
      if (chunks == 1) CHECK(roughly.ms == Approx(all.ms).epsilon(0.01));
      CHECK(static_cast<double>(all.peak) <= 1.03 * static_cast<double>(from_few.peak));
    }
  if (std::getenv("CFP_PRINT"))
    std::printf("micro-batches from few: at most %.2f%% off, roughly %.2f%%, %.2f%% less memory\n", 100 * worst,
                100 * worst_roughly, 100 * (most_memory - 1));
}

TEST_CASE("attention is one kernel whatever order conversions have and whatever is computed again") {
  const target& on = cuda::catalogue_target(number::bfloat16);
  training how;
  how.clip = 1;
  const auto small = [](auto config) {
    config.layers = 2, config.batch = 4, config.sequence = 64;
    return config;
  };
  families::transformer gpt = small(tiny_config());
  gpt.attention_dropout = 0;
  const mesh_shape mesh = mesh_of({2, 2});
  for (const graph& forward :
       {families::decoder(gpt), families::decoder(small(families::read_decoder(tiny("llama"))))}) {
    const graph g = differentiate(refine(forward), how);
    const detail::planned_graph planned(g, on);
    const decision_graph d = detail::decided(planned, mesh, {.lowered_for = on}, {}, true);
    std::mt19937 random(7);
    long fused = 0;
    for (int k = 0; k < 60; ++k) {
      sharding plan = shard(g, d, random_choices(d, random));
      const auto in_any_order = [&] {
        program p = lower(g, mesh, plan, all_operations(g), on.real_bytes);
        on.complete(p, g);
        const std::pair<long, long> as_needed = attention_in(p, g);
        for (const bool overlap : {false, true}) {
          const auto early = attention_in(lowered(g, mesh, plan, on, {.overlap = overlap}, nullptr), g);
          CHECK(early == as_needed);
          fused += early.first;
        }
        return as_needed;
      };
      const std::pair<long, long> less_kept = in_any_order();
      for (assignment& a : plan.assigned) a.recompute = false;
      const std::pair<long, long> all_kept = in_any_order();  // a head that is split is no kernel's
      CHECK((less_kept.second > 0) == (all_kept.second > 0));
      CHECK(all_kept.first + 2 * all_kept.second == 4);  // two layers, forward and backward
    }
    CHECK(fused > 500);
  }
}

TEST_CASE("stages of a mixture of experts, some of whose segments have no operations, train as one rank does",
          "[heavy]") {
  const auto model = [](long rows, int micro_batches) {
    families::transformer c = families::read_decoder(tiny("mixtral"));
    c.batch = rows, c.sequence = 8;
    training how;
    how.micro_batches = micro_batches;
    return differentiate(refine(families::decoder(c)), how);
  };
  const graph whole = model(2, 4);
  const repeats again(whole, parallel_blocks(whole));
  CHECK(std::any_of(again.operations.begin(), again.operations.end(), [](const auto& some) { return some.empty(); }));
  staged_options o = in_double();
  o.micro_batches = 4;
  for (const int places : {2, 4}) {
    o.places = {places};
    const std::optional<staged_plan> best = search_stages(model, 8, some_machine(4), o);
    REQUIRE(best);
    const staged_layout& l = best->layout;
    const graph g = model(best->rows, best->micro_batches);
    const stage_programs p =
        lower_stages(g, l.inside, best->plan, {l.first, l.schedule_of(best->micro_batches), l.costs}, sizeof(double),
                     {.overlap = true});
    families::text_layout inputs;
    inputs.positions = false;
    const families::byte_text text(some_text(), best->rows, 8, 5, inputs);
    const trained alone = train_on(single(g, sizeof(double)), g, text, 3, 3);
    train_options remember;
    remember.keep_changes = true;
    const difference apart =
        compare(alone, train(*threads(p.along[0].mesh, number::float64), p, text, 3, 3, remember), g);
    CHECK(apart.loss <= 1e-10);
    CHECK(apart.parameters <= 1e-7);
  }
}

TEST_CASE("a batch that cannot be cut, or more places than devices, has no stages") {
  staged_options o = in_double();
  CHECK_THROWS_AS(search_stages(model_of, 0, some_machine(4), o), bad_input);
  CHECK(!search_stages(model_of, 1, some_machine(4), o));
  using change = void (*)(staged_options&);
  for (const auto& [wrong, why] :
       {std::pair<change, const char*>([](staged_options& w) { w.places = {3}; }, "divide the machine's 4 devices"),
        {[](staged_options& w) { w.places = {1}; }, "must be 2 or more"},
        {[](staged_options& w) { w.axes = 3; }, "axes inside stages must be 1 or 2"},
        {[](staged_options& w) {
           w.chunks = {1, 0};
         },
         "one is 0"},
        {[](staged_options& w) { w.micro_batches = 3; }, "a step of 4 rows in 3 micro-batches"},
        {[](staged_options& w) { w.most_micro_batches = 0; }, "most_micro_batches must be 2 or more"},
        {[](staged_options& w) { w.machine.memory = -1; }, "memory must be bytes"}}) {
    staged_options other = o;
    wrong(other);
    CHECK_THROWS_WITH(search_stages(model_of, 4, some_machine(4), other), Catch::Contains(why));
  }
  CHECK_THROWS_WITH(search_stages({}, 4, some_machine(4), o), Catch::Contains("there is no model"));
  CHECK_THROWS_WITH(search_stages([](long rows, int) { return model_of(rows, 1); }, 4, some_machine(4), o),
                    Catch::Contains("made a graph of 1 micro-batches"));
  CHECK_THROWS_WITH(search_stages([](long, int passes) { return model_of(1, passes); }, 4, some_machine(4), o),
                    Catch::Contains("it must be of as many rows as asked"));
  for (const int milliseconds :
       {0, 5, 20, 60}) {  // whenever it ends, what is known by then is a plan, or there is none
    o = in_double();
    o.machine.until = std::chrono::steady_clock::now() + std::chrono::milliseconds(milliseconds);
    const std::optional<staged_plan> early = search_stages(model_of, 8, some_machine(4), o);
    if (early) CHECK(early->ends.back() > early->ends.front());
  }
}

}  // namespace staged_search_tests
