// The searches of other systems on the same tables: each finds the optimum of its own formula, and none a faster plan
// than ours.
#include "../catch.hpp"
#include "../from_environment.hpp"
#include "random_chain.hpp"

#include <cfp/solve/other/alpa_stages.hpp>
#include <cfp/solve/other/dapple_stages.hpp>
#include <cfp/solve/other/fastest_options.hpp>
#include <cfp/solve/other/galvatron_layers.hpp>
#include <cfp/solve/other/hybrid_strategies.hpp>
#include <cfp/solve/other/pipedream_stages.hpp>
#include <cfp/solve/other/terapipe_slices.hpp>
#include <cfp/solve/other/uniap_stages.hpp>
#include <cfp/solve/stages.hpp>

#include <algorithm>
#include <cstdio>

namespace stage_policies_tests {

using namespace cfp;
using chains::infinity;
using chains::least_of_all;
using chains::random_chain;

namespace {

constexpr staged_schedule both[] = {staged_schedule::gpipe, staged_schedule::one_forward_one_backward};

std::uint32_t seeds(long all, long some, long few) { return static_cast<std::uint32_t>(how_many(all, some, few)); }

int devices_of(const stage_solution& s) {
  int all = 0;
  for (const stage_option& o : s.option) all += o.devices;
  return all;
}

// A search against the least of its formula over every plan.
template <class Formula>
void check_optimum(const stage_problem& p, staged_schedule kind, const stage_range& r, const stage_solution& s,
                   Formula formula) {
  const double best = least_of_all(p, kind, r, [&](const std::vector<int>& ends, const std::vector<stage_option>& o) {
    return formula(p, ends, o);
  });
  REQUIRE(s.feasible() == (best < infinity));
  if (!s.feasible()) return;
  REQUIRE(formula(p, s.ends, s.option) == Approx(best).margin(1e-9));
  REQUIRE(s.ms == time_of(p, kind, s.ends, s.option));
  if (r.devices > 0) REQUIRE(devices_of(s) == r.devices);
}

// DAPPLE's formulas as they stand in the paper, for stages and sends in a row.
double dapple_as_written(const stage_problem& p, const std::vector<int>& ends, const std::vector<stage_option>& o) {
  std::vector<stage_option> row;
  for (std::size_t s = 0; s < o.size(); ++s) {
    row.push_back(o[s]);
    if (p.border && s + 1 < o.size()) row.push_back({p.border(0, ends[s]).forward, p.border(0, ends[s]).backward});
  }
  const auto both_ways = [&](std::size_t s) { return row[s].forward + row[s].backward; };
  const auto steady = [&](std::size_t s) { return (p.micro_batches - 1) * both_ways(s); };
  std::size_t pivot = row.size() - 1;
  for (std::size_t s = row.size() - 1; s-- > 0;) {
    double between = 0;
    for (std::size_t a = s + 1; a < pivot; ++a) between += both_ways(a);
    if (steady(s) > steady(pivot) + between) pivot = s;
  }
  double warm = 0, ending = 0;
  for (std::size_t s = 0; s <= pivot; ++s) warm += row[s].forward;
  for (std::size_t s = 0; s < row.size(); ++s) {
    double back = 0;
    for (std::size_t a = s; a <= pivot; ++a) back += row[a].backward;
    for (std::size_t a = pivot + 1; a < s; ++a) back -= row[a].backward;
    ending = std::max(ending, row[s].update + back);
  }
  return warm + steady(pivot) + ending;
}

// What the plans of a search take, in parts of what ours take.
struct compared {
  const char* search;
  std::vector<double> ratios{};
  int none = 0;  // chains for which it finds no plan, where there is one

  void add(double ms, double ours) {
    if (ms == infinity) return void(++none);
    REQUIRE(ms >= ours * (1 - 1e-9));
    if (ours > 0) ratios.push_back(ms / ours);
  }
  void print() {
    std::sort(ratios.begin(), ratios.end());
    const auto slower = std::count_if(ratios.begin(), ratios.end(), [](double r) { return r > 1 + 1e-9; });
    std::printf("%-20s %8zu %8.3f %8.3f %8.3f %7.1f%% %8d\n", search, ratios.size(), ratios[ratios.size() / 2],
                ratios[ratios.size() * 9 / 10], ratios.back(),
                100.0 * static_cast<double>(slower) / static_cast<double>(ratios.size()), none);
  }
};

}  // namespace

TEST_CASE("Alpa's stages on submeshes have the least of its formula over cuts and submeshes") {
  int feasible = 0, several = 0;
  for (std::uint32_t seed = 0; seed < seeds(2000, 300, 60); ++seed) {
    random_chain c(seed, 4);
    const node_cluster on{1 + c.below(3), 1 << c.below(3)};
    if (on.devices() > 6) continue;
    const stage_range any{1, std::min(c.p.layers, on.devices()), on.devices()};
    for (const staged_schedule kind : both) {
      const double best =
          least_of_all(c.p, kind, any, [&](const std::vector<int>& ends, const std::vector<stage_option>& chosen) {
            for (const stage_option& o : chosen)
              if (!on.is_submesh(o.devices)) return infinity;
            return alpa_time(c.p, ends, chosen);
          });
      const stage_solution s = alpa_stages(c.p, kind, on);
      CAPTURE(seed, on.nodes, on.per_node);
      REQUIRE(s.feasible() == (best < infinity));
      if (!s.feasible()) continue;
      ++feasible;
      several += s.ends.size() > 1 && devices_of(s) > static_cast<int>(s.ends.size());
      REQUIRE(alpa_time(c.p, s.ends, s.option) == Approx(best).margin(1e-9));
      REQUIRE(devices_of(s) == on.devices());
      for (const stage_option& o : s.option) REQUIRE(on.is_submesh(o.devices));
    }
  }
  CHECK(feasible > 60);
  CHECK(several > 10);
}

TEST_CASE("submeshes are 1, 2, 4, ... devices of a node, or whole nodes") {
  std::vector<int> found;
  const node_cluster on{3, 8};
  for (int d = 0; d <= 32; ++d)
    if (on.is_submesh(d)) found.push_back(d);
  CHECK(found == std::vector<int>{1, 2, 4, 8, 16, 24});
}

TEST_CASE("PipeDream's stages have the least time of the slowest, over cuts and replications") {
  for (std::uint32_t seed = 0; seed < seeds(2000, 300, 60); ++seed) {
    random_chain c(seed);
    CAPTURE(seed);
    check_optimum(c.p, staged_schedule::one_forward_one_backward, {c.p.stages, c.p.stages},
                  pipedream_stages(c.p, staged_schedule::one_forward_one_backward), pipedream_time);
    const double weights = c.part();
    std::map<std::pair<int, int>, std::vector<stage_option>> copies;
    for (const auto& [run, options] : c.options)
      for (const stage_option& o : options)
        for (int m = 1; m <= 4; ++m) copies[run].push_back(replicated(o, m, weights * (run.second - run.first)));
    c.p.options = [&](int, int first, int end) -> const std::vector<stage_option>& { return copies.at({first, end}); };
    const int workers = 1 + c.below(4);
    check_optimum(c.p, staged_schedule::one_forward_one_backward, {1, std::min(c.p.layers, workers), workers},
                  pipedream_stages(c.p, staged_schedule::one_forward_one_backward, workers), pipedream_time);
  }
  CHECK_THROWS_AS(replicated({}, 0, 1), bad_input);
}

TEST_CASE("DAPPLE's plans have the least latency by its formula, over cuts, options and devices") {
  for (std::uint32_t seed = 0; seed < seeds(2000, 300, 60); ++seed) {
    CAPTURE(seed);
    const random_chain one(seed);
    for (const staged_schedule each : both)
      check_optimum(one.p, each, {one.p.stages, one.p.stages}, dapple_stages(one.p, each), dapple_as_written);
    if (seed % 3 != 0) continue;
    random_chain many(seed);
    many.anything();
    check_optimum(many.p, staged_schedule::gpipe, {many.p.stages, many.p.stages},
                  dapple_stages(many.p, staged_schedule::gpipe), dapple_as_written);
    random_chain c(seed, 3);
    const int devices = 1 + c.below(3);
    const staged_schedule kind = staged_schedule::one_forward_one_backward;
    const stage_solution s = dapple_stages(c.p, kind, devices);
    check_optimum(c.p, kind, {1, std::min(c.p.layers, devices), devices}, s, dapple_as_written);
    if (s.feasible()) REQUIRE(dapple_time(c.p, s.ends, s.option) <= s.ms + 1e-9);
  }
}

TEST_CASE(
    "DAPPLE's latency may fall where a stage becomes the pivot: a worse end of the chain then is the better one") {
  const auto taking = [](double ms) { return std::vector<stage_option>{{ms, 0, 0, 0, 0, 0}}; };
  std::map<std::pair<int, int>, std::vector<stage_option>> options;
  for (int first = 0; first < 4; ++first)
    for (int end = first + 1; end <= 4; ++end) options[{first, end}] = taking(100);
  options[{0, 1}] = taking(3.75);
  options[{1, 2}] = options[{2, 4}] = taking(2);               // 6 ms; the pivot stays
  options[{1, 3}] = taking(0.5), options[{3, 4}] = taking(3);  // 6.5 ms; the first becomes the pivot
  stage_problem p;
  p.layers = 4, p.stages = 3, p.micro_batches = 2;
  p.options = [&](int, int first, int end) -> const std::vector<stage_option>& { return options.at({first, end}); };
  const stage_solution s = dapple_stages(p, staged_schedule::gpipe);
  CHECK(s.ends == std::vector<int>{1, 3, 4});
  CHECK(dapple_time(p, s.ends, s.option) == 7.5);
  CHECK(dapple_as_written(p, {1, 2, 4}, {options[{0, 1}][0], options[{1, 2}][0], options[{2, 4}][0]}) == 9.75);
}

TEST_CASE("a choice within stages before the cut is worse than both at once") {
  // Two stages of 1F1B; the first keeps two micro-batches, the last one. The fast option of a run of two layers keeps
  // so much that it may only be last; chosen alone, it leaves no cut in the middle.
  const auto option = [](double ms, double kept) { return stage_option{ms / 3, 2 * ms / 3, 0, 0, kept, 0}; };
  std::map<std::pair<int, int>, std::vector<stage_option>> options;
  for (int first = 0; first < 4; ++first)
    for (int end = first + 1; end <= 4; ++end) {
      const double n = end - first;
      options[{first, end}] = {option(3 * n, 3 * n), option(3.3 * n, 2 * n)};
    }
  stage_problem p;
  p.layers = 4, p.stages = 2, p.micro_batches = 8, p.memory = 9;
  p.options = [&](int, int first, int end) -> const std::vector<stage_option>& { return options.at({first, end}); };
  const fastest_options inner(p);
  const staged_schedule kind = staged_schedule::one_forward_one_backward;
  const stage_solution ours = best_stages(p, kind), two_levels = alpa_stages(inner.problem, kind),
                       one_level = alpa_stages(p, kind);
  CHECK(ours.ends == std::vector<int>{2, 4});
  CHECK(ours.ms < 0.9 * two_levels.ms);
  CHECK(two_levels.ends == std::vector<int>{1, 4});
  CHECK(one_level.ms == Approx(ours.ms));
}

TEST_CASE("Galvatron's strategies are as many as its paper says, before and after pruning") {
  const auto count = [](int devices, bool mixes_data, bool recomputes = false) {
    return hybrid_strategies(devices, {mixes_data, recomputes}).size();
  };
  CHECK(count(4, true) == 13);
  CHECK(count(4, false) == 11);
  CHECK(count(8, true) == 34);
  CHECK(count(8, false) == 22);
  CHECK(count(8, true, true) == 68);
  CHECK(count(8, false, true) == 44);
  CHECK(count(16, true) == 73);
  CHECK(count(16, false) == 37);
  std::string all;
  for (const hybrid_strategy& s : hybrid_strategies(4)) all += to_string(s) + " ";
  CHECK(all ==
        "pp1-dp2-tp2 pp1-dp4 pp1-sdp2-tp2 pp1-sdp4 pp1-tp2-dp2 pp1-tp2-sdp2 pp1-tp4 pp2-dp2 pp2-sdp2 pp2-tp2 pp4 ");
  CHECK_THROWS_AS(hybrid_strategies(6), bad_input);
}

TEST_CASE("Galvatron's strategies of layers take the least time of all that fit, to the last byte") {
  int tighter = 0, refused = 0;
  for (std::uint32_t seed = 0; seed < seeds(2000, 300, 60); ++seed) {
    layer_chain c = chains::random_layers(seed, 6);
    const int first = static_cast<int>(seed % 2), end = c.layers(), under_way = 1 + static_cast<int>(seed % 3);
    std::vector<std::pair<double, double>> all;  // time and memory of every choice
    std::vector<int> none;
    chains::every_strategy(c, first, end, none, [&](const std::vector<int>& chosen) {
      const stage_option o = stage_of(c, first, chosen);
      all.emplace_back(c.micro_batches * (o.forward + o.backward) + o.update, o.always + o.kept * under_way);
    });
    const auto [best_ms, cap] = *std::min_element(all.begin(), all.end());
    CAPTURE(seed, cap);
    for (const double memory : {infinity, cap, cap - 1}) {
      double best = infinity;
      for (const auto& [ms, bytes] : all)
        if (bytes <= memory) best = std::min(best, ms);
      c.memory = memory;
      const layer_choice found = galvatron_layers(c, first, end, under_way, 1);
      REQUIRE(found.feasible() == (best < infinity));
      refused += !found.feasible();
      if (!found.feasible()) continue;
      REQUIRE(found.ms == Approx(best).margin(1e-9));
      const stage_option o = stage_of(c, first, found.strategies);
      REQUIRE(o.always + o.kept * under_way <= memory);
      REQUIRE(c.micro_batches * (o.forward + o.backward) + o.update == Approx(found.ms).margin(1e-9));
      tighter += memory < cap && found.ms > best_ms + 1e-9;
    }
  }
  CHECK(tighter > 20);
  CHECK(refused > 0);
  const layer_chain one = chains::random_layers(1, 2);
  CHECK_THROWS_AS(galvatron_layers(one, 0, 9, 1, 1), bad_input);
  CHECK_THROWS_AS(galvatron_layers(one, 0, 1, 1, 0), bad_input);
}

#ifdef CFP_HAS_CBC
TEST_CASE("UniAP's program finds the least of its formula over placements and strategies") {
  int feasible = 0, refused = 0;
  for (std::uint32_t seed = 0; seed < seeds(1000, 60, 20); ++seed) {
    const chain_stages c(chains::random_layers(seed, 6));
    for (const staged_schedule kind : both) {
      double best = infinity;
      std::vector<int> none;
      chains::every_strategy(c.chain, 0, c.chain.layers(), none, [&](const std::vector<int>& strategies) {
        stage_problem one = c.problem;  // of these strategies alone
        std::vector<stage_option> of(1);
        one.options = [&](int, int first, int end) -> const std::vector<stage_option>& {
          of[0] = stage_of(c.chain, first, {strategies.begin() + first, strategies.begin() + end});
          return of;
        };
        best = std::min(best, least_of_all(one, kind, {c.chain.stages, c.chain.stages},
                                           [&](const std::vector<int>& ends, const std::vector<stage_option>& o) {
                                             return uniap_time(one, ends, o);
                                           }));
      });
      const layer_plan found = uniap_stages(c.chain, kind);
      CAPTURE(seed, c.chain.layers(), c.chain.stages, c.chain.micro_batches, c.chain.memory);
      REQUIRE(found.proven);
      REQUIRE(found.feasible() == (best < infinity));
      found.feasible() ? ++feasible : ++refused;
      if (!found.feasible()) continue;
      REQUIRE(found.ms == Approx(best).margin(1e-6));
      const std::vector<stage_option> options = c.options_of(found);
      REQUIRE(static_cast<int>(options.size()) == c.chain.stages);
      REQUIRE(uniap_time(c.problem, found.ends, options) == Approx(best).margin(1e-6));
      for (std::size_t s = 0; s < options.size(); ++s)
        REQUIRE(fits(c.problem, kind, options[s], static_cast<int>(options.size() - s)));
    }
  }
  CHECK(feasible > 10);
  CHECK(refused > 0);
}

TEST_CASE(
    "where backward takes twice forward everywhere, UniAP's formula is GPipe's time, and its plan as good as ours") {
  int feasible = 0;
  for (std::uint32_t seed = 0; seed < seeds(1000, 40, 20); ++seed) {
    const chain_stages c(chains::random_layers(seed, 5, 2));
    const layer_plan found = uniap_stages(c.chain, staged_schedule::gpipe);
    const stage_solution ours = best_stages(c.problem, staged_schedule::gpipe);
    CAPTURE(seed);
    REQUIRE(found.feasible() == ours.feasible());
    if (!ours.feasible()) continue;
    ++feasible;
    REQUIRE(found.ms == Approx(ours.ms).margin(1e-6));
    REQUIRE(uniap_time(c.problem, ours.ends, ours.option) == Approx(ours.ms).margin(1e-9));
  }
  CHECK(feasible > 5);
}
#endif

TEST_CASE("equal layers are cut into equal stages by every formula") {
  layer_chain equal;
  equal.strategies.assign(8, {{1, 2, 0, 1, 1, 0}});
  equal.stages = 4, equal.micro_batches = 8;
  const chain_stages c(equal);
  const std::vector<int> even{2, 4, 6, 8};
  const staged_schedule kind = staged_schedule::one_forward_one_backward;
  CHECK(best_stages(c.problem, kind).ends == even);
  CHECK(alpa_stages(c.problem, kind).ends == even);
  CHECK(pipedream_stages(c.problem, kind).ends == even);
  CHECK(dapple_stages(c.problem, kind).ends == even);
  CHECK(galvatron_stages(c.chain, kind, 1).ends == even);
#ifdef CFP_HAS_CBC
  CHECK(uniap_stages(c.chain, kind).ends == even);
#endif
}

// CFP_PRINT=1 prints the table of docs/14_pipelines.md, of 1F1B; UniAP's program then is solved for all chains.
TEST_CASE("on random chains no search by a formula finds a faster plan than ours") {
  const bool prints = from_environment("CFP_PRINT", 0) != 0;
  for (const staged_schedule kind : both) {
    compared alpa{"Alpa, one level"}, two_levels{"Alpa, two levels"}, pipedream{"PipeDream"}, dapple{"DAPPLE"},
        galvatron{"Galvatron"}, uniap{"UniAP"};
    for (std::uint32_t seed = 0; seed < seeds(1000, 1000, 100); ++seed) {
      layer_chain drawn = chains::random_layers(seed, 5);
      drawn.stages = std::max(2, drawn.stages);
      const chain_stages c(drawn);
      const stage_solution ours = best_stages(c.problem, kind);
      CAPTURE(seed);
      const auto add = [&](compared& to, const stage_solution& s) {
        REQUIRE((ours.feasible() || !s.feasible()));
        if (ours.feasible()) to.add(s.ms, ours.ms);
      };
      const auto add_layers = [&](compared& to, const layer_plan& plan) {
        stage_solution s;
        if (plan.feasible())
          s.ends = plan.ends, s.option = c.options_of(plan), s.ms = time_of(c.problem, kind, s.ends, s.option);
        add(to, s);
      };
      const fastest_options inner(c.problem);
      add(alpa, alpa_stages(c.problem, kind)), add(two_levels, alpa_stages(inner.problem, kind));
      add(pipedream, pipedream_stages(c.problem, kind)), add(dapple, dapple_stages(c.problem, kind));
      add_layers(galvatron, galvatron_stages(c.chain, kind, 1));
#ifdef CFP_HAS_CBC
      if (prints || seed < seeds(1000, 30, 10)) add_layers(uniap, uniap_stages(c.chain, kind));
#endif
    }
    for (compared* each : {&alpa, &dapple, &pipedream}) CHECK(each->none == 0);
    CHECK(two_levels.ratios.size() > 30);
    if (!prints || kind == staged_schedule::gpipe) continue;
    std::printf("%-20s %8s %8s %8s %8s %8s %8s\n", "search", "chains", "median", "90%", "worst", "slower", "none");
    for (compared* each : {&alpa, &two_levels, &uniap, &galvatron, &pipedream, &dapple})
      if (!each->ratios.empty()) each->print();
  }
}

TEST_CASE("TeraPipe's slices have the least time of all cuts of a sequence, and get no longer") {
  std::mt19937 random(1);
  for (int r = 0; r < 30; ++r) {
    const auto part = [&] { return 0.05 * (1 + static_cast<int>(random() % 20)); };
    const double start = 4 * part(), token = part(), pair = part() / 5;
    slice_problem p;
    p.tokens = r == 0 ? 14 : 6 + r % 7, p.stages = r == 0 ? 6 : 1 + r % 6;
    p.ms = [&](int length, int context) { return start + token * length + pair * length * (context + length / 2.0); };
    double best = infinity, uniform = infinity, no_longer = infinity;
    for (unsigned cuts = 0; cuts < 1u << (p.tokens - 1); ++cuts) {
      std::vector<int> lengths{1};
      for (int t = 1; t < p.tokens; ++t) {
        if ((cuts >> (t - 1) & 1) != 0) lengths.push_back(0);
        ++lengths.back();
      }
      const double ms = terapipe_time(p, lengths);
      best = std::min(best, ms);
      if (*std::min_element(lengths.begin(), lengths.end()) == *std::max_element(lengths.begin(), lengths.end()))
        uniform = std::min(uniform, ms);
      if (std::is_sorted(lengths.rbegin(), lengths.rend())) no_longer = std::min(no_longer, ms);
    }
    const slice_plan found = terapipe_slices(p);
    CAPTURE(r, start, token, pair, found.lengths);
    REQUIRE(found.ms == Approx(best));
    REQUIRE(found.ms <= uniform + 1e-9);
    CHECK(no_longer == Approx(best));
    CHECK(std::is_sorted(found.lengths.rbegin(), found.lengths.rend()));
  }
  CHECK_THROWS_AS(terapipe_slices({0, 1, {}}), bad_input);
}

}  // namespace stage_policies_tests
