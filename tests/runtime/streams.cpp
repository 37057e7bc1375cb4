// Collectives beside operators: the stream itself, and what happens when a rank fails while one is under way.
#include "../catch.hpp"

#include "small.hpp"

#include <cfp/backend/host/side_stream.hpp>
#include <cfp/profile/machine/timeline.hpp>

#include <random>

namespace streams_tests {

using namespace cfp;
using namespace cfp::families;
using namespace small_tests;

TEST_CASE("a stream runs what is issued in order, and says what went wrong to who waits") {
  std::vector<int> done;
  {
    host::side_stream s;
    const auto issue = [&](int i) {
      s.issue([&done, i] {
        if (i < 0) throw std::runtime_error("minus");
        done.push_back(i);
      });
    };
    for (int round = 0; round < 100; ++round) {
      for (int i = 0; i < 8; ++i) issue(8 * round + i);
      s.wait(s.issued() - 3);
      s.wait_all();
      REQUIRE(done.size() == static_cast<std::size_t>(8 * (round + 1)));
    }
    issue(-1);
    issue(1000);
    CHECK_THROWS_WITH(s.wait_all(), "minus");
    CHECK_THROWS_WITH(s.wait_all(), "minus");
  }
  for (int i = 0; i < 800; ++i) CHECK(done[static_cast<std::size_t>(i)] == i);
  CHECK(done.size() == 800);  // nothing after the error
}

TEST_CASE("a stream takes more than it can hold") {
  int done = 0;
  host::side_stream s;
  for (int i = 0; i < 5000; ++i)
    s.issue([&done, i] {
      if (i == 0) std::this_thread::sleep_for(std::chrono::milliseconds(50));
      ++done;
    });
  CHECK(s.issued() == 5000);
  s.wait_all();
  CHECK(done == 5000);
}

TEST_CASE("a rank that fails while collectives are under way: all report, none hangs") {
  const graph g = differentiate(refine(decoder(tiny_config())));
  const mesh_shape mesh = mesh_of({2});
  const decision_graph d = decisions(g, parallel_blocks(g), mesh);
  schedule order;
  order.overlap = true;
  std::mt19937 random(3);
  for (int n = 0; n < 6; ++n) {
    const plan p = random_plan(g, mesh, d, random, sizeof(float), order);
    const auto ranks = threads(mesh);
    const auto begin = std::chrono::steady_clock::now();
    try {
      ranks->run([&](rank& r) {
        const auto run = r.load(p.code, g, 1);
        run->step(1, 1);
        if (r.number() == 1) throw std::runtime_error("out of paper");
        run->step(2, 1);
      });
      CHECK(count_collectives(p.code, g).total_bytes() == 0);
    } catch (const rank_failure& e) {
      CHECK(std::string(e.what()).find("rank 1 failed: out of paper") == 0);
      CHECK(e.errors().size() == 2);
    }
    CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(20));
    ranks->run([&](rank& r) { r.load(p.code, g, 1)->step(1, 1); });  // and the ranks go on
  }
}

TEST_CASE("the order of a program keeps what it computes, and memory is not shared while a collective uses it") {
  const graph g = differentiate(refine(decoder(tiny_config())));
  std::mt19937 random(9);
  for (const auto& mesh : {mesh_of({2}), mesh_of({2, 2})}) {
    const decision_graph d = decisions(g, parallel_blocks(g), mesh, axis_choice::regathered);
    for (int n = 0; n < 40; ++n) {
      schedule order;
      order.overlap = n % 2 == 0;
      order.ahead = 1 + n % 4;
      const plan p = random_plan(g, mesh, d, random, sizeof(float), order);
      const stream_order streams = order_of(p.code);
      // Replays it: a collective is done only when somebody has waited for it. What it touches is touched by nobody
      // before.
      std::vector<int> under_way;
      const auto overlap = [&](int a, int b) {
        const buffer &x = p.code[p.code[a].root], &y = p.code[p.code[b].root];
        if (p.code[a].root == p.code[b].root) return true;
        return !x.persistent && !y.persistent && x.offset < y.offset + y.bytes && y.offset < x.offset + x.bytes;
      };
      const auto each = [](const instruction& i, const auto& f) {
        for (const int b : i.in) f(b, false);
        for (const int b : i.out) f(b, true);
      };
      std::size_t clashes = 0;
      for (std::size_t i = 0; i < p.code.code.size(); ++i) {
        const instruction& now = p.code.code[i];
        if (static_cast<int>(i) == p.code.end) under_way.clear();
        if (now.beside) {
          under_way.push_back(static_cast<int>(i));
          continue;
        }
        while (!under_way.empty() && under_way.front() <= streams.waits_for[i][0]) under_way.erase(under_way.begin());
        for (const int other : under_way)
          each(now, [&](int a, bool writes) {
            each(p.code.code[static_cast<std::size_t>(other)],
                 [&](int b, bool written) { clashes += (writes || written) && overlap(a, b); });
          });
      }
      CHECK(clashes == 0);
      if (order.overlap && count_collectives(p.code, g).total_bytes() > 0)
        CHECK(std::any_of(p.code.code.begin(), p.code.code.end(), [](const instruction& i) { return i.beside; }));
    }
  }
}

}  // namespace streams_tests
