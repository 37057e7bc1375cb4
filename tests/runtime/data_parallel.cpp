// Data parallelism of the literature: DistributedDataParallel's buckets (arXiv 2006.15704), Horovod's fusion (arXiv
// 1802.05799), against all buckets there are; and all-reduces as programs of sends, run on ranks.
#include "../catch.hpp"

#include <cfp/communicator/summing_program.hpp>
#include <cfp/communicator/threads/run_ranks.hpp>
#include <cfp/communicator/threads/weight_server.hpp>
#include <cfp/pipeline/parameter_server.hpp>
#include <cfp/solve/gradient_buckets.hpp>

#include <atomic>
#include <chrono>
#include <cmath>
#include <random>
#include <thread>

namespace data_parallel_tests {

using namespace cfp;

namespace {

double between(std::mt19937& random, double least, double most) {
  return std::uniform_real_distribution<>(least, most)(random);
}

std::vector<made_gradients> drawn_steps(std::mt19937& random, int count) {
  std::vector<made_gradients> out;
  for (int n = 0; n < count; ++n) out.push_back({between(random, 0, 3), between(random, 1, 100)});
  return out;
}
collective_ms drawn_links(std::mt19937& random) {
  const double latency = between(random, 0, 2), rate = between(random, 10, 100);
  return [=](double bytes) { return latency + bytes / rate; };
}

struct totals {
  double backward = 0, bytes = 0;
};
totals of(const std::vector<made_gradients>& steps) {
  totals out;
  for (const made_gradients& s : steps) out.backward += s.ms, out.bytes += s.bytes;
  return out;
}

}  // namespace

TEST_CASE("PyTorch DDP: buckets take no less than backward or what is sent, one bucket takes both") {
  std::mt19937 random(1);
  double hidden = 0;
  for (int n = 0; n < 200; ++n) {
    const std::vector<made_gradients> steps = drawn_steps(random, 1 + static_cast<int>(random() % 12));
    const collective_ms sum = drawn_links(random);
    const totals all = of(steps);
    const double apart = all.backward + sum(all.bytes);
    CHECK(buckets_of(1e9, steps, sum).ms == Approx(apart));
    CHECK(overlapped_ms(steps, {static_cast<int>(steps.size())}, sum) == Approx(apart));
    for (const double most : {1.0, 50.0, 150.0, 400.0}) {
      const gradient_buckets b = buckets_of(most, steps, sum);
      double sent = 0;
      int from = 0;
      for (const int end : b.ends) {
        double bytes = 0;
        for (; from < end; ++from) bytes += steps[static_cast<std::size_t>(from)].bytes;
        CHECK((bytes >= most || end == b.ends.back()));
        sent += sum(bytes);
      }
      CHECK(b.ms >= std::max(all.backward + sum(steps.back().bytes), sent) * (1 - 1e-12));
      CHECK(b.ms <= (all.backward + sent) * (1 + 1e-12));
      hidden = std::max(hidden, 1 - b.ms / (all.backward + sent));
    }
  }
  CHECK(hidden > 0.3);  // backward hides much of it
}

TEST_CASE("PyTorch DDP: the best buckets are the best of all") {
  std::mt19937 random(2);
  int better = 0;
  for (int n = 0; n < 200; ++n) {
    const int count = 1 + static_cast<int>(random() % 10);
    const std::vector<made_gradients> steps = drawn_steps(random, count);
    const collective_ms sum = drawn_links(random);
    double least = std::numeric_limits<double>::infinity();
    for (int cuts = 0; cuts < 1 << (count - 1); ++cuts) {
      std::vector<int> ends;
      for (int s = 1; s < count; ++s)
        if ((cuts >> (s - 1)) & 1) ends.push_back(s);
      ends.push_back(count);
      least = std::min(least, overlapped_ms(steps, ends, sum));
    }
    const gradient_buckets best = best_buckets(steps, sum);
    CHECK(best.ms == Approx(least));
    CHECK(overlapped_ms(steps, best.ends, sum) == Approx(best.ms));
    for (const double most : {25.0, 100.0, 300.0}) {
      CHECK(best.ms <= buckets_of(most, steps, sum).ms * (1 + 1e-12));
      CHECK(best.ms <= fused_ready(most, steps, sum).ms * (1 + 1e-12));
      better += best.ms < 0.99 * buckets_of(most, steps, sum).ms;
    }
  }
  CHECK(better > 100);
}

TEST_CASE("Horovod: what is ready together goes out as one, and pays one latency") {
  const collective_ms sum = [](double bytes) { return 5 + bytes / 10; };
  const std::vector<made_gradients> at_once(8, {0, 10});  // all there when backward ends
  CHECK(fused_ready(1e9, at_once, sum).ms == Approx(5 + 8.0));
  CHECK(fused_ready(10, at_once, sum).ms == Approx(8 * (5 + 1.0)));
  CHECK(fused_ready(1e9, at_once, sum).ends == std::vector<int>{8});
  std::mt19937 random(3);
  for (int n = 0; n < 200; ++n) {
    const std::vector<made_gradients> steps = drawn_steps(random, 1 + static_cast<int>(random() % 12));
    const collective_ms links = drawn_links(random);
    const gradient_buckets fused = fused_ready(200, steps, links);
    CHECK(fused.ms == Approx(overlapped_ms(steps, fused.ends, links)));
    CHECK(fused.ends.back() == static_cast<int>(steps.size()));
  }
}

TEST_CASE("AllReduce: rings, trees, halving and doubling and hierarchies sum up on ranks, with the sends they say") {
  for (const int ranks : {1, 2, 3, 4, 6, 8}) {
    rank_pool pool(ranks);
    for (const long count : {0l, 1l, 5l, 48l, 1000l}) {
      std::vector<summing_program> all{ring_sum(ranks, count), tree_sum(ranks, count)};
      if ((ranks & (ranks - 1)) == 0) all.push_back(halving_doubling_sum(ranks, count));
      for (const int inside : {1, 2, 3})
        if (ranks % inside == 0) all.push_back(hierarchical_sum(ranks, inside, count));
      for (const summing_program& p : all) {
        std::vector<std::vector<long>> data(static_cast<std::size_t>(ranks));
        std::vector<long> sent(static_cast<std::size_t>(ranks));
        pool.run([&](rank_context& here) {
          std::vector<long>& mine = data[static_cast<std::size_t>(here.rank)];
          for (long i = 0; i < count; ++i) mine.push_back((here.rank + 1) * 1000 + i * i);
          run_sum(p, here, mine.data());
          for (int g = 0; g < here.groups_and_pairs(); ++g)
            sent[static_cast<std::size_t>(here.rank)] +=
                here.group(g).counted().bytes[static_cast<std::size_t>(collective_kind::send)];
        });
        long wrong = 0;
        for (const std::vector<long>& mine : data)
          for (long i = 0; i < count; ++i)
            wrong += mine[static_cast<std::size_t>(i)] != 500l * ranks * (ranks + 1) + ranks * i * i;
        CAPTURE(ranks, count, p.steps.size());
        CHECK(wrong == 0);
        for (int r = 0; r < ranks; ++r)
          CHECK(sent[static_cast<std::size_t>(r)] == p.sent_by(r) * static_cast<long>(sizeof(long)));
      }
    }
  }
}

TEST_CASE("AllReduce: steps and elements are those of the formulas, and the better of ring and tree changes once") {
  const double a = 3, b = 0.25;  // of a step, of an element
  for (const int p : {2, 4, 8, 16}) {
    const long n = 16 * 35;
    const double log = std::log2(p);
    CHECK(ring_sum(p, n).time(a, b) == Approx(2 * (p - 1) * a + 2.0 * (p - 1) / p * n * b));
    CHECK(tree_sum(p, n).time(a, b) == Approx(2 * log * (a + n * b)));
    CHECK(halving_doubling_sum(p, n).time(a, b) == Approx(2 * log * a + 2.0 * (p - 1) / p * n * b));
    CHECK(hierarchical_sum(p, 2, n).time(a, b) ==
          Approx((2 + 2 * (p / 2 - 1)) * a + (1 + 1.0 * (p / 2 - 1) / (p / 2)) * n * b));
    if (p < 4) continue;
    // 2 (p - 1) a + 2 (p - 1) / p n b = 2 log2 p (a + n b)
    const double same = a * (p - 1 - log) / (b * (log - (p - 1.0) / p));
    const long below = p * static_cast<long>(same / p), above = below + p;
    CHECK(tree_sum(p, below).time(a, b) <= ring_sum(p, below).time(a, b));
    CHECK(tree_sum(p, above).time(a, b) >= ring_sum(p, above).time(a, b));
  }
  CHECK(tree_sum(6, 10).steps.size() == 6);
  CHECK(ring_sum(8, 800).sent_by(3) == 1400);  // 1.75 of what is summed
  CHECK(ring_sum(8, 800).steps.size() == 14);
  // A reduce-scatter and an all-gather are half of a ring each.
  CHECK(ring_sum(8, 800).time(a, b) == Approx(2 * 7 * (a + 100 * b)));
  CHECK_THROWS_AS(halving_doubling_sum(6, 10), bad_input);
  CHECK_THROWS_AS(hierarchical_sum(6, 4, 10), bad_input);
  CHECK_THROWS_AS(ring_sum(0, 10), bad_input);
}

TEST_CASE(
    "parameter servers: BSP takes the slowest of each clock, SSP keeps its gap, and who waits less is not slower") {
  std::mt19937 random(4);
  int strictly = 0;
  for (int n = 0; n < 100; ++n) {
    const int workers = 1 + static_cast<int>(random() % 6), clocks = 1 + static_cast<int>(random() % 20);
    std::vector<std::vector<double>> ms;
    for (int w = 0; w < workers; ++w) {
      ms.emplace_back();
      for (int c = 0; c < clocks; ++c) ms.back().push_back(between(random, 1, random() % 8 == 0 ? 10 : 2));
    }
    const auto work = [&](int w, int c) { return ms[static_cast<std::size_t>(w)][static_cast<std::size_t>(c)]; };
    double slowest_each = 0, slowest_worker = 0;
    for (int c = 0; c < clocks; ++c) {
      double last = 0;
      for (int w = 0; w < workers; ++w) last = std::max(last, work(w, c));
      slowest_each += last;
    }
    for (int w = 0; w < workers; ++w) {
      double all = 0;
      for (int c = 0; c < clocks; ++c) all += work(w, c);
      slowest_worker = std::max(slowest_worker, all);
    }
    const server_run bsp = simulate_server(workers, clocks, 0, work),
                     free = simulate_server(workers, clocks, any_staleness, work);
    CHECK(bsp.ms == Approx(slowest_each));
    CHECK(bsp.largest_missed() == 0);
    CHECK(free.ms == Approx(slowest_worker));
    double before = bsp.ms;
    for (const int s : {1, 2, 4, 100}) {
      const server_run ssp = simulate_server(workers, clocks, s, work);
      CHECK(ssp.ms <= before * (1 + 1e-12));
      CHECK(ssp.largest_missed() <= s);
      for (int w = 0; w < workers; ++w)
        for (int c = s + 1; c < clocks; ++c)
          for (const std::vector<double>& other : ssp.end)  // nobody is more than s clocks behind
            CHECK(other[static_cast<std::size_t>(c - 1 - s)] <=
                  ssp.begin[static_cast<std::size_t>(w)][static_cast<std::size_t>(c)]);
      before = ssp.ms;
    }
    CHECK(before == Approx(free.ms));
    strictly += free.ms < 0.98 * bsp.ms;
  }
  CHECK(strictly > 50);
  CHECK(central_bytes(8, 1) == 16);
  CHECK(sharded_bytes(8, 1) == 1.75);  // as a ring
  CHECK_THROWS_AS(simulate_server(0, 1, 0, [](int, int) { return 1.0; }), bad_input);
}

TEST_CASE("parameter servers on threads: what is read is at most so old, and BSP is a sum of gradients on one thread") {
  // Each worker has numbers of its own, whose mean is to be found: its gradient is the distance.
  constexpr int workers = 4, clocks = 60;
  const auto own = [](int w, int c) { return (w + 1) * 3.0 + (c % 5); };
  const auto alone = [&] {
    double x = 0;
    for (int c = 0; c < clocks; ++c) {
      double by = 0;
      for (int w = 0; w < workers; ++w) by += 0.05 * (own(w, c) - x);
      x += by;
    }
    return x;
  }();
  for (const int staleness : {0, 1, 3, any_staleness}) {
    weight_server server({0}, workers, staleness);
    std::atomic<int> most_missed = 0, reads = 0;
    const auto at_least = [](std::atomic<int>& most, int x) {
      for (int was = most; was < x && !most.compare_exchange_weak(was, x);) {}
    };
    std::vector<std::thread> threads;
    for (int w = 0; w < workers; ++w)
      threads.emplace_back([&, w] {
        for (int c = 0; c < clocks; ++c) {
          const weight_server::reading now = server.read(w);
          at_least(most_missed, now.missed), ++reads;
          if (w == 0) std::this_thread::sleep_for(std::chrono::microseconds(200));  // a straggler
          server.update(w, {0.05 * (own(w, c) - now.weights[0])});
        }
      });
    for (std::thread& t : threads) t.join();
    CAPTURE(staleness);
    CHECK(reads == workers * clocks);
    CHECK(most_missed <= staleness);
    if (staleness == 0) CHECK(server.weights()[0] == Approx(alone).epsilon(1e-12));
    if (staleness > 0) CHECK(most_missed > 0);  // observed, not only simulated
  }
  CHECK_THROWS_AS(weight_server({0}, 0, 0), bad_input);
  CHECK_THROWS_AS(weight_server({0}, 1, 0).update(0, {1, 2}), bad_input);
}

TEST_CASE("what buckets cannot be is said") {
  const std::vector<made_gradients> steps(3, {1, 1});
  const collective_ms sum = [](double bytes) { return bytes; };
  CHECK_THROWS_AS(overlapped_ms(steps, {2}, sum), bad_input);
  CHECK_THROWS_AS(overlapped_ms(steps, {2, 2, 3}, sum), bad_input);
  CHECK_THROWS_AS(overlapped_ms(steps, {4}, sum), bad_input);
  CHECK_THROWS_AS(buckets_of(0, steps, sum), bad_input);
  CHECK_THROWS_AS(fused_ready(-1, steps, sum), bad_input);
}

}  // namespace data_parallel_tests
