// The searches of other systems on the same tables: each finds the optimum of its own formula, and none a faster plan
// than ours.
#include "../catch.hpp"
#include "../from_environment.hpp"
#include "random_chain.hpp"

#include <cfp/solve/other/alpa_stages.hpp>
#include <cfp/solve/other/dapple_stages.hpp>
#include <cfp/solve/other/fastest_options.hpp>
#include <cfp/solve/other/pipedream_stages.hpp>
#include <cfp/solve/stages.hpp>

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
    if (p.border && s + 1 < o.size()) row.push_back({p.border(ends[s]).forward, p.border(ends[s]).backward});
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
    c.p.options = [&](int first, int end) -> const std::vector<stage_option>& { return copies.at({first, end}); };
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
    random_chain c(seed, 3);
    const int devices = 1 + c.below(3);
    const staged_schedule kind = staged_schedule::one_forward_one_backward;
    const stage_solution s = dapple_stages(c.p, kind, devices);
    check_optimum(c.p, kind, {1, std::min(c.p.layers, devices), devices}, s, dapple_as_written);
    if (s.feasible()) REQUIRE(dapple_time(c.p, s.ends, s.option) <= s.ms + 1e-9);
  }
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
  p.options = [&](int first, int end) -> const std::vector<stage_option>& { return options.at({first, end}); };
  const fastest_options inner(p);
  const staged_schedule kind = staged_schedule::one_forward_one_backward;
  const stage_solution ours = best_stages(p, kind), two_levels = alpa_stages(inner.problem, kind),
                       one_level = alpa_stages(p, kind);
  CHECK(ours.ends == std::vector<int>{2, 4});
  CHECK(ours.ms < 0.9 * two_levels.ms);
  CHECK(two_levels.ends == std::vector<int>{1, 4});
  CHECK(one_level.ms == Approx(ours.ms));
}

}  // namespace stage_policies_tests
