// Sequences of many lengths: which pipeline takes which (Hydraulis), which plan when (ParaDySe), and what changes of
// conditions are worth (Rethinking).
#include "../catch.hpp"

#include <cfp/solve/course.hpp>
#include <cfp/solve/exact/exact.hpp>
#include <cfp/solve/other/paradyse_layers.hpp>
#include <cfp/solve/packing.hpp>
#include <cfp/solve/pipeline_sets.hpp>

#include <cmath>
#include <functional>
#include <random>

namespace lengths_tests {

using namespace cfp;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

struct drawn {
  explicit drawn(std::uint32_t seed) : random(seed) {}
  int below(int n) { return static_cast<int>(random() % static_cast<std::uint32_t>(n)); }
  double part() { return 0.25 * (1 + below(12)); }
  std::mt19937 random;
};

// Everything that can be done with sequences and pipelines.
double by_trying_all(const std::vector<long>& lengths, const std::vector<sequence_pipeline>& pipelines) {
  double best = infinity;
  std::vector<double> load(pipelines.size(), 0);
  const std::function<void(std::size_t)> from = [&](std::size_t n) {
    if (n == lengths.size()) {
      best = std::min(best, *std::max_element(load.begin(), load.end()));
      return;
    }
    for (std::size_t p = 0; p < pipelines.size(); ++p) {
      if (!pipelines[p].takes(lengths[n])) continue;
      const double before = load[p];
      load[p] += pipelines[p].ms(lengths[n]);
      from(n + 1);
      load[p] = before;
    }
  };
  from(0);
  return best;
}

void check_dispatch(const std::vector<long>& lengths, const std::vector<sequence_pipeline>& pipelines,
                    const dispatched& d) {
  REQUIRE(d.pipeline.size() == lengths.size());
  std::vector<double> load(pipelines.size(), 0);
  for (std::size_t n = 0; n < lengths.size(); ++n) {
    const sequence_pipeline& p = pipelines[static_cast<std::size_t>(d.pipeline[n])];
    REQUIRE(p.takes(lengths[n]));
    load[static_cast<std::size_t>(d.pipeline[n])] += p.ms(lengths[n]);
  }
  for (std::size_t p = 0; p < load.size(); ++p) REQUIRE(d.load[p] == Approx(load[p]));
  REQUIRE(d.ms == Approx(*std::max_element(load.begin(), load.end())));
  REQUIRE(d.bound <= d.ms * (1 + 1e-12));
}

// Few are long, as in texts: lengths of a lognormal distribution.
std::vector<long> skewed(std::mt19937& random, std::size_t n, long longest) {
  std::lognormal_distribution<> length(6.5, 1.2);
  std::vector<long> out;
  while (out.size() < n)
    if (const long l = std::lround(length(random)); l >= 1 && l <= longest) out.push_back(l);
  return out;
}

// A table of random plans and conditions.
course_table random_table(drawn& d) {
  course_table t;
  const int plans = 1 + d.below(3), conditions = 1 + d.below(3);
  for (int c = 0; c < conditions; ++c) t.conditions.push_back("c" + std::to_string(c));
  for (int p = 0; p < plans; ++p) {
    t.plans.push_back("p" + std::to_string(p));
    t.ms.emplace_back();
    for (int c = 0; c < conditions; ++c) t.ms.back().push_back(d.below(5) == 0 ? infinity : d.part());
  }
  if (d.below(4) > 0)
    for (int p = 0; p < plans; ++p) {
      t.change.emplace_back();
      for (int q = 0; q < plans; ++q) t.change.back().push_back(p == q ? 0 : d.part() * 4);
    }
  return t;
}

}  // namespace

TEST_CASE("Hydraulis: every sequence goes to one pipeline that takes it, and no dispatch of few is better") {
  int uneven = 0;
  for (std::uint32_t seed = 0; seed < 400; ++seed) {
    drawn d(seed);
    std::vector<sequence_pipeline> pipelines;
    for (int p = 1 + d.below(3); p > 0; --p)
      pipelines.push_back({2 + d.below(9), 0.01 * d.below(20), 0.1 * (1 + d.below(5))});
    pipelines[0].longest = 12;
    std::vector<long> lengths;
    for (int n = d.below(8); n > 0; --n) lengths.push_back(1 + d.below(12));
    const dispatched found = dispatch_sequences(lengths, pipelines);
    CAPTURE(seed, lengths.size(), pipelines.size());
    check_dispatch(lengths, pipelines, found);
    REQUIRE(found.gap() == 0);
    REQUIRE(found.ms == Approx(by_trying_all(lengths, pipelines)));
    uneven += found.imbalance() > 1.01;
    const dispatched quickly = dispatch_sequences(lengths, pipelines, 0);  // what is known at once
    check_dispatch(lengths, pipelines, quickly);
    REQUIRE(quickly.bound <= found.ms * (1 + 1e-12));
  }
  CHECK(uneven > 20);
  CHECK_THROWS_AS(dispatch_sequences({5}, {{4, 1, 1}}), bad_input);
  CHECK_THROWS_AS(dispatch_sequences({5}, {}), bad_input);
  CHECK_THROWS_AS(dispatch_sequences({5}, {{8, -1, 1}}), bad_input);
}

TEST_CASE("Hydraulis: of skewed lengths the longest pipeline is nearer to the mean than with packing to one length") {
  std::mt19937 random(1);
  for (int n = 0; n < 10; ++n) {
    const long longest = 16384;
    const std::vector<long> lengths = skewed(random, 256, longest);
    const std::vector<sequence_pipeline> pipelines(4, {longest, 1e-6, 1e-3});
    const dispatched found = dispatch_sequences(lengths, pipelines, 20000);
    check_dispatch(lengths, pipelines, found);
    // Micro-batches of one length, in order, dealt out one by one.
    std::vector<double> load(4, 0);
    const packed_sequences fixed = packed_in_order(lengths, longest);
    for (std::size_t m = 0; m < fixed.size(); ++m)
      for (const int s : fixed[m]) load[m % 4] += pipelines[0].ms(lengths[static_cast<std::size_t>(s)]);
    const double most = *std::max_element(load.begin(), load.end()), sum = load[0] + load[1] + load[2] + load[3];
    CHECK(found.imbalance() <= 4 * most / sum);
    CHECK(found.imbalance() < 1.01);
    CHECK(found.gap() < 0.01);
  }
}

TEST_CASE("Hydraulis: packed sequences are each in one micro-batch, of at most so many tokens, and none lasts longer") {
  std::mt19937 random(2);
  const sequence_pipeline p{4096, 1e-6, 1e-3};
  const auto longest = [&](const packed_sequences& of, const std::vector<long>& lengths) {
    double most = 0;
    for (const std::vector<int>& some : of) {
      double ms = 0;
      for (const int s : some) ms += p.ms(lengths[static_cast<std::size_t>(s)]);
      most = std::max(most, ms);
    }
    return most;
  };
  for (int n = 0; n < 50; ++n) {
    const std::vector<long> lengths = skewed(random, 1 + random() % 60, 4096);
    const packed_sequences in_order = packed_in_order(lengths, 4096), few = packed_few(lengths, 4096),
                           evenly = packed_evenly(lengths, 4096, p);
    for (const packed_sequences* const all : {&in_order, &few, &evenly}) {
      std::vector<int> times(lengths.size(), 0);
      for (const std::vector<int>& some : *all) {
        long tokens = 0;
        for (const int s : some) tokens += lengths[static_cast<std::size_t>(s)], ++times[static_cast<std::size_t>(s)];
        REQUIRE(tokens <= 4096);
      }
      REQUIRE(std::count(times.begin(), times.end(), 1) == static_cast<std::ptrdiff_t>(lengths.size()));
    }
    CHECK(few.size() <= in_order.size());
    CHECK(evenly.size() == few.size());
    CHECK(longest(evenly, lengths) <= longest(few, lengths));
  }
  CHECK_THROWS_AS(packed_few({9}, 8), bad_input);
}

TEST_CASE("Hydraulis: sets of pipelines take exactly the devices, and the best of them is the best of all") {
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    drawn d(seed);
    // More devices take longer sequences and are quicker, but not as many times as quick.
    const std::vector<sequence_pipeline> kinds{{4, 0.02, 0.3, 1}, {8, 0.011, 0.18, 2}, {16, 0.006, 0.11, 4}};
    std::vector<long> lengths;
    for (int n = 1 + d.below(6); n > 0; --n) lengths.push_back(1 + d.below(d.below(2) == 0 ? 4 : 16));
    const int devices = 4 + d.below(5);
    double best = infinity;
    long sets = 0;
    every_pipeline_set(kinds, devices, [&](const std::vector<int>& count) {
      REQUIRE(count[0] + 2 * count[1] + 4 * count[2] == devices);
      ++sets;
      const std::vector<sequence_pipeline> all = pipelines_of(kinds, count);
      best = std::min(best, by_trying_all(lengths, all));
    });
    const pipeline_set pruned = best_pipeline_set(kinds, devices, lengths),
                       whole = best_pipeline_set(kinds, devices, lengths, 200000, false);
    REQUIRE(pruned.plan.ms == Approx(best));
    REQUIRE(whole.plan.ms == Approx(best));
    REQUIRE(pruned.looked_at + pruned.left_out == sets);
    REQUIRE(pruned.looked_at <= whole.looked_at);
  }
  CHECK(best_pipeline_set({{4, 1, 1, 1}}, 2, {9}).count.empty());
  CHECK_THROWS_AS(best_pipeline_set({{4, 1, 1, 0}}, 2, {1}), bad_input);
}

TEST_CASE(
    "ParaDySe: lists of layers fit while any does, are no slower than one strategy in all, and near the exact ones") {
  double worst = 1;
  int mixed = 0, exact_is_faster = 0;
  for (std::uint32_t seed = 0; seed < 1000; ++seed) {
    drawn d(seed);
    std::vector<layer_strategy> all;
    for (int n = 1 + d.below(5); n > 0; --n) all.push_back({1.0 + d.below(20), 1.0 + d.below(20)});
    const int layers = 1 + d.below(8);
    const double limit = layers * (1.0 + d.below(20));
    const layer_list list = paradyse_layers(all, layers, limit);
    CAPTURE(seed, layers, limit);
    REQUIRE(std::accumulate(list.count.begin(), list.count.end(), 0) == layers);
    bool any = false;
    for (const layer_strategy& s : all)
      if (layers * s.bytes <= limit) {
        any = true;
        REQUIRE(list.ms <= layers * s.ms);
      }
    REQUIRE(list.fits == any);
    mixed += std::count_if(list.count.begin(), list.count.end(), [](int n) { return n > 0; }) > 1;
    cost_graph g;
    for (int l = 0; l < layers; ++l) {
      cost_node n;
      std::vector<double> ms;
      for (const layer_strategy& s : all) ms.push_back(s.ms), n.memory.push_back(std::lround(s.bytes));
      n.time = ms;
      g.nodes.push_back(n);
    }
    g.memory_limit = std::lround(limit);
    const solution exact = solve(g);
    REQUIRE(exact.feasible == any);
    if (!any) continue;
    REQUIRE(exact.time <= list.ms * (1 + 1e-12));
    worst = std::max(worst, list.ms / exact.time), exact_is_faster += list.ms > exact.time * (1 + 1e-9);
  }
  CHECK(mixed > 50);
  CHECK(exact_is_faster > 3);
  CHECK(worst > 1.01);
}

TEST_CASE("ParaDySe: for longer sequences a list takes no more memory for a token, and never more than there is") {
  // A fast strategy that keeps all of a sequence on each device, and one that splits it, slower.
  double before = infinity;
  for (long tokens = 1000; tokens <= 32000; tokens += 500) {
    const auto l = static_cast<double>(tokens);
    const std::vector<layer_strategy> all{{l * 1e-3, l * 4}, {l * 1.3e-3, l * 1.5}, {l * 1.6e-3, l}};
    const layer_list list = paradyse_layers(all, 12, 12 * 32000.0);
    CHECK(list.fits);
    CHECK(list.bytes / l <= before * (1 + 1e-12));
    before = list.bytes / l;
  }
  CHECK(before == Approx(12));
}

TEST_CASE("ParaDySe, Rethinking: the best course is the best of all, and a policy that sees no future is no better") {
  int changed = 0, none = 0, stays = 0;
  for (std::uint32_t seed = 0; seed < 500; ++seed) {
    drawn d(seed);
    const course_table t = random_table(d);
    std::vector<stretch> trace;
    for (int n = 1 + d.below(5); n > 0; --n)
      trace.push_back({d.below(static_cast<int>(t.conditions.size())), 1 + d.below(20)});
    const int before = d.below(2) == 0 ? -1 : d.below(static_cast<int>(t.plans.size()));
    double best = infinity;
    std::vector<int> plans(trace.size(), 0);
    const std::function<void(std::size_t)> from = [&](std::size_t s) {
      if (s == trace.size()) return void(best = std::min(best, detail::course_of(t, trace, plans, before).ms));
      for (plans[s] = 0; plans[s] < static_cast<int>(t.plans.size()); ++plans[s]) from(s + 1);
      plans[s] = 0;
    };
    from(0);
    const course found = best_course(t, trace, before), seen = simulate(t, trace, before);
    CAPTURE(seed);
    if (!(best < infinity)) {
      REQUIRE(found.plans.empty());
      REQUIRE(!(seen.ms < infinity));
      ++none;
      continue;
    }
    REQUIRE(found.ms == Approx(best));
    REQUIRE(seen.ms >= found.ms * (1 - 1e-12));
    REQUIRE(seen.ms < infinity);  // never where it does not run
    changed += found.changes > 0, stays += found.changes < seen.changes;
    // To keep the old plan is one of the courses: to plan again is never worse than that.
    if (before < 0) continue;
    REQUIRE(found.ms <= detail::course_of(t, trace, std::vector<int>(trace.size(), before), before).ms * (1 + 1e-12));
  }
  CHECK(changed > 50);
  CHECK(none > 20);
  CHECK(stays > 5);
}

TEST_CASE(
    "ParaDySe: a policy keeps its plan where another is faster by less than 5%, or the change takes longer than that "
    "gains") {
  course_table t{{"short", "long"}, {"a", "b"}, {{1.00, 2.0}, {1.04, 1.0}}, {{0, 10}, {10, 0}}};
  course_policy p(t, 1);
  for (int n = 0; n < 1000; ++n) CHECK(p.next(0) == 1);  // 4% slower
  course_policy q(t, 0);
  int steps = 0;
  while (q.next(1) == 0) ++steps;
  CHECK(steps == 10);  // each lost 1 ms, and the change takes 10
  // After one change of conditions it loses at most as much again as the change takes, against knowing what comes.
  for (long length = 1; length < 60; ++length) {
    const std::vector<stretch> trace{{0, 20}, {1, length}};
    CHECK(simulate(t, trace, 0).ms <= best_course(t, trace, 0).ms + 10 + 1);
  }
  t.ms[0][1] = infinity;  // a has not the memory
  course_policy r(t, 0);
  CHECK(r.next(0) == 0);
  CHECK(r.next(1) == 1);
  t.ms[1][1] = infinity;
  CHECK(course_policy(t, 0).next(1) == -1);
  t.ms[1].pop_back();
  CHECK_THROWS_AS(best_course(t, {{0, 1}}), bad_input);
  CHECK_THROWS_AS(best_course({{"c"}, {"p"}, {{1}}, {}}, {{1, 1}}), bad_input);
  CHECK_THROWS_AS(best_course({{"c"}, {"p"}, {{-1}}, {}}, {{0, 1}}), bad_input);
}

}  // namespace lengths_tests
