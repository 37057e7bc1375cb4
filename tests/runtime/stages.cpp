// Stages of a chain of layers, against every plan there is.
#include "../catch.hpp"
#include "random_chain.hpp"

#include <cfp/solve/other/alpa_stages.hpp>
#include <cfp/solve/stages.hpp>

#include <array>
#include <map>

namespace stages_tests {

using namespace cfp;
using chains::every_plan;
using chains::random_chain;

TEST_CASE("the best stages are the best of all, with GPipe and 1F1B, and Alpa's are no better") {
  int feasible = 0, worse = 0, refused = 0;
  for (std::uint32_t seed = 0; seed < 1000; ++seed) {
    const random_chain c(seed);
    for (const staged_schedule kind : {staged_schedule::gpipe, staged_schedule::one_forward_one_backward}) {
      double best = std::numeric_limits<double>::infinity(), by_formula = best;
      every_plan(c.p, kind, {c.p.stages, c.p.stages},
                 [&](const std::vector<int>& ends, const std::vector<stage_option>& chosen) {
                   best = std::min(best, time_of(c.p, kind, ends, chosen));
                   by_formula = std::min(by_formula, alpa_time(c.p, ends, chosen));
                 });
      const stage_solution s = best_stages(c.p, kind);
      CAPTURE(seed, c.p.layers, c.p.stages, c.p.micro_batches);
      REQUIRE(s.feasible() == (best < std::numeric_limits<double>::infinity()));
      const stage_solution alpa = alpa_stages(c.p, kind);
      REQUIRE(alpa.feasible() == s.feasible());
      if (!s.feasible()) {
        ++refused;
        continue;
      }
      ++feasible;
      REQUIRE(s.ms == Approx(best).margin(1e-9));
      REQUIRE(s.gap() <= 1e-9);
      REQUIRE(time_of(c.p, kind, s.ends, s.option) == s.ms);
      REQUIRE(alpa_time(c.p, alpa.ends, alpa.option) == Approx(by_formula).margin(1e-9));
      REQUIRE(alpa.ms >= s.ms - 1e-9);
      worse += alpa.ms > s.ms + 1e-9;
      const stage_solution cut_short = best_stages(c.p, kind, 0);
      REQUIRE(cut_short.bound <= best + 1e-9);
      REQUIRE(cut_short.ms >= best - 1e-9);
    }
  }
  CHECK(feasible > 800);
  CHECK(refused > 100);
  CHECK(worse > 20);
}

TEST_CASE("equal layers are cut into equal stages, in (M + D - 1) times one, whatever their number") {
  for (const int layers : {8, 32, 96})
    for (const int stages : {2, 4, 8}) {
      stage_problem p;
      p.layers = layers, p.stages = stages, p.micro_batches = 16;
      std::vector<std::vector<stage_option>> options(static_cast<std::size_t>(layers) + 1);
      for (int n = 1; n <= layers; ++n)
        options[static_cast<std::size_t>(n)].push_back({1.0 * n, 2.0 * n, 0, 1.0 * n, 1.0 * n, 0});
      p.options = [&](int, int first, int end) -> const std::vector<stage_option>& {
        return options[static_cast<std::size_t>(end - first)];
      };
      for (const staged_schedule kind : {staged_schedule::gpipe, staged_schedule::one_forward_one_backward}) {
        const stage_solution s = best_stages(p, kind);
        CHECK(s.ms == Approx(3.0 * layers / stages * (16 + stages - 1)));
        CHECK(s.gap() <= 1e-9);
      }
    }
  CHECK_THROWS_AS(best_stages({2, 3, 1, 0, {}, {}}, staged_schedule::gpipe), bad_input);
}

TEST_CASE("Rethinking: the best stages on devices of several kinds are the best of all") {
  int feasible = 0, refused = 0;
  for (std::uint32_t seed = 0; seed < 500; ++seed) {
    random_chain c(seed);
    // Each stage on devices that take so many times as long, and have more memory or less; further ones between some.
    std::vector<double> takes, sends{0};
    for (int s = 0; s < c.p.stages; ++s) {
      takes.push_back(0.5 * (1 + c.below(4))), sends.push_back(0.5 * c.below(4));
      c.p.memories.push_back(0.5 * (2 + c.below(20)));
    }
    std::map<std::array<int, 3>, std::vector<stage_option>> known;
    for (int s = 0; s < c.p.stages; ++s)
      for (const auto& [run, options] : c.options)
        for (stage_option o : options) {
          o.forward *= takes[static_cast<std::size_t>(s)], o.backward *= takes[static_cast<std::size_t>(s)];
          known[{s, run.first, run.second}].push_back(o);
        }
    c.p.options = [&](int stage, int first, int end) -> const std::vector<stage_option>& {
      return known.at({stage, first, end});
    };
    c.p.border = [&](int stage, int at) {
      const double ms = sends[static_cast<std::size_t>(stage)] * (1 + at % 2);
      return border_cost{ms, ms / 2};
    };
    for (const staged_schedule kind : {staged_schedule::gpipe, staged_schedule::one_forward_one_backward}) {
      const double best = chains::least_of_all(c.p, kind, {c.p.stages, c.p.stages},
                                               [&](const std::vector<int>& ends, const std::vector<stage_option>& o) {
                                                 return time_of(c.p, kind, ends, o);
                                               });
      const stage_solution s = best_stages(c.p, kind);
      CAPTURE(seed, c.p.layers, c.p.stages, c.p.micro_batches);
      REQUIRE(s.feasible() == (best < chains::infinity));
      feasible += s.feasible(), refused += !s.feasible();
      if (!s.feasible()) continue;
      REQUIRE(s.ms == Approx(best).margin(1e-9));
      REQUIRE(s.gap() <= 1e-9);
    }
  }
  CHECK(feasible > 300);
  CHECK(refused > 50);
  stage_problem p;
  p.layers = 4, p.stages = 2, p.memories = {1, 2, 3};
  CHECK_THROWS_AS(best_stages(p, staged_schedule::gpipe), bad_input);
}

}  // namespace stages_tests
