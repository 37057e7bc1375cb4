// Stages of a chain of layers, against every plan there is.
#include "../catch.hpp"

#include <cfp/solve/other/alpa_stages.hpp>
#include <cfp/solve/stages.hpp>

#include <map>
#include <random>

namespace stages_tests {

using namespace cfp;

namespace {

// Options of every run of layers, at random: layers add up, options trade time for memory.
struct random_chain {
  explicit random_chain(std::uint32_t seed) : random(seed) {
    p.layers = 2 + below(5);
    p.stages = 1 + below(std::min(p.layers, 4));
    p.micro_batches = 1 + below(6);
    for (int i = 0; i < p.layers; ++i) layers.push_back({part(), part(), 0, part(), part(), 0});
    for (int i = 0; i < p.layers; ++i)
      for (int end = i + 1; end <= p.layers; ++end) add(i, end);
    if (below(3) > 0) p.memory = (2 + below(16)) * 0.5;
    p.options = [this](int first, int end) -> const std::vector<stage_option>& { return options.at({first, end}); };
    if (below(2) == 0) {
      for (int i = 0; i < p.layers; ++i) borders.push_back({part() / 2, part() / 2});
      p.border = [this](int at) { return borders[static_cast<std::size_t>(at)]; };
    }
  }
  random_chain(const random_chain&) = delete;

  int below(int n) { return static_cast<int>(random() % static_cast<std::uint32_t>(n)); }
  double part() { return 0.25 * below(8); }
  void add(int first, int end) {
    stage_option all;
    for (int i = first; i < end; ++i) {
      const stage_option& l = layers[static_cast<std::size_t>(i)];
      all.forward += l.forward, all.backward += l.backward, all.always += l.always, all.kept += l.kept;
    }
    all.update = part();
    for (int n = 1 + below(3); n > 0; --n) {
      stage_option o = all;
      o.backward += 0.5 * below(4), o.kept = std::max(0.0, o.kept - 0.5 * below(4)), o.id = n;
      options[{first, end}].push_back(o);
    }
  }

  std::mt19937 random;
  std::vector<stage_option> layers;
  std::map<std::pair<int, int>, std::vector<stage_option>> options;
  std::vector<border_cost> borders;
  stage_problem p;
};

void every_plan(const stage_problem& p, staged_schedule kind, std::vector<int> ends, std::vector<stage_option> chosen,
                const std::function<void(const std::vector<int>&, const std::vector<stage_option>&)>& look) {
  const int first = ends.empty() ? 0 : ends.back(), left = p.stages - static_cast<int>(ends.size());
  if (left == 0) {
    if (first == p.layers) look(ends, chosen);
    return;
  }
  for (int end = first + 1; end <= p.layers; ++end)
    for (const stage_option& o : p.options(first, end)) {
      if (o.always + o.kept * kept_with(kind, left, p.micro_batches) > p.memory) continue;
      ends.push_back(end), chosen.push_back(o);
      every_plan(p, kind, ends, chosen, look);
      ends.pop_back(), chosen.pop_back();
    }
}

}  // namespace

TEST_CASE("the best stages are the best of all, with GPipe and 1F1B, and Alpa's are no better") {
  int feasible = 0, worse = 0, refused = 0;
  for (std::uint32_t seed = 0; seed < 1000; ++seed) {
    const random_chain c(seed);
    for (const staged_schedule kind : {staged_schedule::gpipe, staged_schedule::one_forward_one_backward}) {
      double best = std::numeric_limits<double>::infinity(), by_formula = best;
      every_plan(c.p, kind, {}, {}, [&](const std::vector<int>& ends, const std::vector<stage_option>& chosen) {
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
      p.options = [&](int first, int end) -> const std::vector<stage_option>& {
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

}  // namespace stages_tests
