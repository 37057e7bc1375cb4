// Schedules of a pipeline, against closed forms.
#include "../catch.hpp"

#include <cfp/pipeline/named_schedules.hpp>
#include <cfp/pipeline/schedule_file.hpp>
#include <cfp/pipeline/schedule_picture.hpp>

#include <cmath>
#include <functional>

namespace pipeline_tests {

using namespace cfp;

namespace {

constexpr double exact = 1e-12;

std::vector<stage_cost> equal(int stages, double forward = 1, double backward = 2) {
  stage_cost c;
  c.forward = forward;
  c.backward_inputs = c.backward_weights = backward / 2;
  return std::vector<stage_cost>(static_cast<std::size_t>(stages), c);
}

std::string refused(const std::function<void()>& what) {
  try {
    what();
  } catch (const bad_input& e) {
    return e.what();
  }
  return "";
}
bool contains(const std::string& text, const char* words) { return text.find(words) != std::string::npos; }

}  // namespace

TEST_CASE("gpipe and 1f1b stand idle for (D - 1) of (M + D - 1) slots, and keep M or min(D - i, M) micro-batches") {
  for (const int stages : {1, 2, 3, 4, 8})
    for (const int micro_batches : {1, 2, 4, 8, 32})
      for (const double backward : {1.0, 2.0, 3.5}) {
        const double idle = static_cast<double>(stages - 1) / (micro_batches + stages - 1);
        const pipeline_run all = simulate(gpipe(stages, micro_batches), equal(stages, 1, backward));
        const pipeline_run one = simulate(one_forward_one_backward(stages, micro_batches), equal(stages, 1, backward));
        CAPTURE(stages, micro_batches, backward);
        CHECK(all.idle() == Approx(idle).margin(exact));
        CHECK(one.idle() == Approx(idle).margin(exact));
        for (int i = 0; i < stages; ++i) {
          const auto at = static_cast<std::size_t>(i);
          CHECK(all.peak[at] == micro_batches);
          CHECK(one.peak[at] == std::min(stages - i, micro_batches));
          CHECK(one.versions[at] == 1);
          CHECK(one.staleness[at] == 0);
        }
      }
  CHECK(simulate(gpipe(4, 4), equal(4)).idle() == Approx(0.4286).epsilon(1e-3));
  CHECK(simulate(gpipe(4, 1), equal(4)).idle() == Approx(0.75));  // one after the other
}

TEST_CASE("interleaved stages stand idle (D - 1) / (v M) of the ideal time") {
  for (const int ranks : {2, 4, 8})
    for (const int chunks : {2, 3, 4})
      for (const int rounds : {1, 2, 4}) {
        const int micro_batches = ranks * rounds;
        const pipeline_run run = simulate(interleaved(ranks, chunks, micro_batches), equal(ranks * chunks));
        const double ideal = 3.0 * chunks * micro_batches;
        CAPTURE(ranks, chunks, micro_batches);
        CHECK(run.ms / ideal - 1 == Approx((ranks - 1.0) / (chunks * micro_batches)).margin(exact));
        if (micro_batches > ranks) CHECK(run.peak[0] / chunks == Approx(ranks + (ranks - 1.0) / chunks));
      }
  CHECK(contains(refused([&] { interleaved(4, 2, 6); }), "6 micro-batches on 4 ranks"));
}

TEST_CASE("chimera stands idle (D - 2) / (2 N + D - 2), with backward twice as long (D - 2) / (1.5 N + D - 2)") {
  for (const int stages : {2, 4, 6, 8})
    for (const int times : {1, 2, 3}) {
      const int n = times * stages;
      CAPTURE(stages, n);
      stage_cost c;
      c.backward_inputs = c.backward_weights = 0.5;
      const pipeline_run run = simulate(chimera(stages, n, c), equal(stages, 1, 1));
      CHECK(run.idle() == Approx((stages - 2.0) / (2 * n + stages - 2)).margin(exact));
      if (times > 1) continue;
      const pipeline_run longer = simulate(chimera(stages, n), equal(stages, 1, 2));
      CHECK(longer.idle() == Approx((stages - 2.0) / (1.5 * n + stages - 2)).margin(exact));
      for (const double kept : longer.peak) CHECK((kept >= stages / 2 + 1 && kept <= stages));
    }
}

TEST_CASE("split backward leaves D - 1 of 3 (D - 1) idle slots, with more under way none") {
  for (const int stages : {2, 3, 4, 8}) {
    const int n = 3 * stages;
    CAPTURE(stages);
    const auto idle_ms = [&](const pipeline_run& run, std::size_t rank) {
      double first = run.slots[rank].front().begin, last = run.slots[rank].back().end;
      return last - first - run.busy[rank];
    };
    const pipeline_run h1 = simulate(zero_bubble_h1(stages, n), equal(stages));
    const pipeline_run h2 = simulate(zero_bubble_h2(stages, n), equal(stages));
    const pipeline_run whole = simulate(one_forward_one_backward(stages, n), equal(stages));
    CHECK(whole.ms == 3.0 * n + 3 * (stages - 1));
    CHECK(h1.ms == 3.0 * n + (stages - 1));
    for (std::size_t r = 0; r < h2.slots.size(); ++r) CHECK(idle_ms(h2, r) == Approx(0).margin(exact));
    CHECK(h1.peak == std::vector<double>(static_cast<std::size_t>(stages), stages));
    CHECK(h2.peak == std::vector<double>(static_cast<std::size_t>(stages), 2 * stages - 1));
  }
}

TEST_CASE("without a break between steps stage i has D - i versions, or two, or one that backward does not know") {
  const int stages = 4, n = 64;
  const pipeline_run stashed = simulate(pipedream(stages, n), equal(stages));
  for (int i = 0; i < stages; ++i) {
    CHECK(stashed.versions[static_cast<std::size_t>(i)] == stages - i);
    CHECK(stashed.staleness[static_cast<std::size_t>(i)] == stages - i - 1);
  }
  CHECK(stashed.consistent);
  for (const int batch : {4, 8}) {
    const pipeline_run two = simulate(pipedream_2bw(stages, n, batch), equal(stages));
    for (std::size_t i = 0; i < 4; ++i) {
      CHECK(two.versions[i] == 2);
      CHECK(two.staleness[i] == 1);
    }
    CHECK(two.idle() == Approx((stages - 1.0) / (n + stages - 1)));
  }
  CHECK(contains(refused([&] { pipedream_2bw(4, 8, 2); }), "two versions are too few"));
  const pipeline_run newest = simulate(pipemare(stages, n), equal(stages));
  CHECK(!newest.consistent);
  CHECK(newest.versions == std::vector<int>(4, 1));
}

TEST_CASE("slices of tokens take the sum of their times and K - 1 times the longest") {
  const std::vector<double> slices{5, 4, 3, 1.5, 0.5};
  const int stages = 6, count = static_cast<int>(slices.size());
  std::vector<stage_cost> costs;
  for (int s = 0; s < stages; ++s)
    for (const double t : slices) {
      stage_cost c;
      c.forward = t, c.backward_inputs = c.backward_weights = 0;
      costs.push_back(c);
    }
  CHECK(simulate(gpipe(stages, count), costs).ms == Approx(14 + 5 * 5.0));
}

TEST_CASE(
    "micro-batches in K slices stand idle for (D - 1) of (K M + D - 1) slots, whole or one forward, one backward") {
  for (const int stages : {1, 2, 4, 8})
    for (const int micro_batches : {1, 2, 4})
      for (const int slices : {1, 2, 5}) {
        const int all = slices * micro_batches;
        const double idle = (stages - 1.0) / (all + stages - 1);
        const pipeline_run tera = simulate(terapipe(stages, micro_batches, slices), equal(stages * slices));
        const pipeline_run one = simulate(sequence_1f1b(stages, micro_batches, slices), equal(stages * slices));
        CAPTURE(stages, micro_batches, slices);
        CHECK(tera.idle() == Approx(idle).margin(exact));
        CHECK(one.idle() == Approx(idle).margin(exact));
        for (int i = 0; i < stages; ++i) {
          CHECK(tera.peak[static_cast<std::size_t>(i)] == all);
          CHECK(one.peak[static_cast<std::size_t>(i)] == std::min(stages - i + slices - 1, all));
        }
      }
  // Of uneven slices, as in the formula: forward alone.
  const std::vector<double> times{5, 4, 3, 1.5, 0.5};
  std::vector<stage_cost> costs(6 * 5);
  for (std::size_t s = 0; s < costs.size(); ++s) {
    costs[s].forward = times[s % 5], costs[s].backward_inputs = costs[s].backward_weights = 0;
  }
  CHECK(simulate(terapipe(6, 1, 5), costs).ms == Approx(14 + 5 * 5.0));
}

TEST_CASE("what is sent goes one after the other, and is waited for") {
  stage_cost c;
  c.send_forward = c.send_backward = 0.5;
  const pipeline_run run = simulate(gpipe(2, 3), std::vector<stage_cost>(2, c));
  CHECK(run.slots[1][0].begin == 1.5);
  CHECK(run.ms == 1 + 0.5 + 3 + 3 * 2 + 0.5 + 2);
  c.send_forward = 3;  // the link is slower than what fills it
  const pipeline_run slow = simulate(gpipe(2, 3), std::vector<stage_cost>(2, c));
  CHECK(slow.slots[1][2].begin == 1 + 3 * 3);
}

TEST_CASE("a schedule that cannot be is refused in words") {
  pipeline_schedule s = one_forward_one_backward(2, 2);
  std::swap(s.ranks[0][0], s.ranks[0][2]);
  CHECK(contains(refused([&] { simulate(s, equal(2)); }), "does not follow its forward"));
  s = one_forward_one_backward(2, 2);
  s.ranks[1].erase(s.ranks[1].begin());
  CHECK(contains(refused([&] { simulate(s, equal(2)); }), "forward of micro-batch 0 by stage 1 is missing"));
  s = one_forward_one_backward(2, 2);
  s.ranks[1].push_back(s.ranks[1].front());
  CHECK(contains(refused([&] { simulate(s, equal(2)); }), "twice"));
  s = one_forward_one_backward(2, 2);
  s.ranks[1].push_back(s.ranks[1].back());
  CHECK(contains(refused([&] { check(s); }), "update by stage 1 after micro-batch 1 stands there twice"));
  for (const double wrong : {-1.0, std::nan(""), HUGE_VAL}) {
    std::vector<stage_cost> costs = equal(2);
    costs[1].send_forward = wrong;
    CHECK(contains(refused([&] { simulate(one_forward_one_backward(2, 2), costs); }), "must be numbers from 0 to"));
  }
  s = one_forward_one_backward(2, 2);
  s.ranks[0].pop_back();
  CHECK(contains(refused([&] { simulate(s, equal(2)); }), "is followed by no update"));
  s = one_forward_one_backward(2, 2);
  std::swap(s.ranks[1][0], s.ranks[1][2]), std::swap(s.ranks[1][1], s.ranks[1][3]);  // the second one first
  std::swap(s.ranks[0][1], s.ranks[0][2]);
  CHECK(contains(refused([&] { simulate(s, equal(2)); }), "waits for itself"));
  CHECK(contains(refused([&] { simulate(one_forward_one_backward(2, 2), equal(3)); }), "one for each stage"));
  s = terapipe(2, 1, 2);
  std::swap(s.ranks[0][0], s.ranks[0][1]);
  CHECK(contains(refused([&] { check(s); }), "forward of micro-batch 0 by stage 1 does not follow that of the slice"));
  s = terapipe(2, 1, 2);
  std::swap(s.ranks[0][2], s.ranks[0][4]);
  CHECK(
      contains(refused([&] { check(s); }), "backward of micro-batch 0 by stage 1 does not precede that of the slice"));
  s = terapipe(2, 1, 2);
  s.slices = 3;
  CHECK(contains(refused([&] { check(s); }), "4 stages in slices of 3"));
}

TEST_CASE("sizes that a schedule cannot have are refused in words") {
  CHECK(contains(refused([&] { gpipe(0, 4); }), "0 ranks, 4 micro-batches"));
  CHECK(contains(refused([&] { pipedream_2bw(4, 10, 4); }), "10 micro-batches in steps of 4"));
  CHECK(contains(refused([&] { chimera(3, 4); }), "both must be even"));
  CHECK(contains(refused([&] { chimera(4096, 100000); }), "the product of these is at most 4194304"));
  CHECK(contains(refused([&] { gpipe(4096, 100000); }), "the product of these is at most 4194304"));
  CHECK(contains(refused([&] { schedule_named("1f2b", {}); }), "'1f2b' is none of gpipe, 1f1b, interleaved"));
}

TEST_CASE("a schedule written to a file is read as it was, and drawn slot by slot") {
  for (const named_schedule& named : named_schedules) {
    const pipeline_schedule s = named.of({4, 8, 2, {}, 3});
    const pipeline_schedule again = read_schedule(write_schedule(s));
    CHECK(again.name == named.name);
    CHECK(again.ranks == s.ranks);
    CHECK((again.stages == s.stages && again.micro_batches == 8 && again.batch == s.batch && again.reads == s.reads));
    CHECK(again.slices == s.slices);
    stage_cost c;
    c.update = 1;
    const pipeline_run run = simulate(s, std::vector<stage_cost>(static_cast<std::size_t>(s.stages), c));
    const std::string picture = svg_of(s, run);
    for (const std::vector<slot>& mine : s.ranks)
      for (const slot& x : mine) CHECK(contains(picture, (">" + describe(x) + "<").c_str()));
    const std::string text = text_of(s, run, 1);
    CHECK(std::count(text.begin(), text.end(), '\n') == 4);
    CHECK(static_cast<double>(std::count(text.begin(), text.end(), '.')) == Approx(4 * run.ms * run.idle()));
  }
}

TEST_CASE("slots that begin between columns are drawn too, each about as long as it is") {
  stage_cost c;
  c.send_forward = c.send_backward = 0.5;
  const pipeline_schedule s = one_forward_one_backward(2, 2);
  const std::string text = text_of(s, simulate(s, std::vector<stage_cost>(2, c)), 1);
  for (const char* slots : {"0", "1", "aa", "bb"}) CHECK(contains(text.substr(text.find("rank 1")), slots));
}

TEST_CASE("a file that is no schedule is refused with its place") {
  const std::string good = write_schedule(gpipe(2, 1));
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    const std::size_t at = text.find(from);
    REQUIRE(at != std::string::npos);
    return refused([&] { read_schedule(text.replace(at, from.size(), to), "own.json"); });
  };
  CHECK(
      contains(with("\"micro_batches\":1", "\"micro_batches\":1000000"), "has 6 slots: a forward and a backward of 2"));
  CHECK(contains(with("\"name\":\"gpipe\"", "\"name\":\"\""), "1 to 60 of them, is ''"));
  CHECK(with("f0.0", "f0.1") ==
        "own.json: schedule gpipe, rank 0: forward of micro-batch 1 by stage 0, but there are 2 "
        "stages and 1 micro-batches");
  for (const char* word : {"x0.0", "f0", "f0.", "f.0", "f0.0 ", "", "f99999999999.0"})
    CHECK(contains(with("f0.0", word), "is no slot: those are f, b, i, w or u"));
  CHECK(contains(with("\"stages\":2", "\"stages\":0"), "stages must be a number from 1 to 1000000, is 0"));
  CHECK(contains(with("stashed", "old"), "reads must be stashed, delayed or newest, is 'old'"));
  CHECK(contains(with("\"name\":\"gpipe\"", "\"name\":\"<g>\""), "name must be letters, digits and _"));
  CHECK(contains(with("\"version\":1", "\"version\":2"), "version 2"));
  CHECK(contains(with("\"batch\":1,", ""), "must have 'batch'"));
  CHECK(contains(with("[\"f0.0\"", "[1,\"f0.0\""), "a slot must be a text"));
}

}  // namespace pipeline_tests
