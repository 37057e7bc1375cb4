// Sparse attention in balance: db-SP's imbalance, its placing of heads and blocks, and its choice of degrees.
#include "../catch.hpp"

#include <cfp/solve/sparse_attention.hpp>

#include <random>

namespace sparse_tests {

using namespace cfp;

namespace {

block_loads drawn(std::mt19937& random, int heads, int blocks) {
  block_loads out = block_loads::uniform(heads, blocks);
  for (double& x : out.load) x = random() % 3 == 0 ? 1 + static_cast<double>(random() % 4) : 0;
  out(0, 0, 0) = 1;
  return out;
}

// By its definition, block by block.
double by_definition(const block_loads& w, const attention_split& s) {
  double worst = 0;
  for (int g = 0; g < s.by_heads; ++g) {
    double all = 0;
    for (int step = 0; step < s.by_sequence; ++step) {
      double most = 0;
      for (int rank = 0; rank < s.by_sequence; ++rank) {
        double load = 0;
        for (int h = 0; h < w.heads; ++h)
          for (int q = 0; q < w.blocks; ++q)
            for (int k = 0; k < w.blocks; ++k)
              if (s.group[static_cast<std::size_t>(h)] == g &&
                  s.query_at[static_cast<std::size_t>(g)][static_cast<std::size_t>(q)] == rank &&
                  s.key_at[static_cast<std::size_t>(g)][static_cast<std::size_t>(k)] == (rank + step) % s.by_sequence)
                load += w(h, q, k);
        most = std::max(most, load);
      }
      all += most;
    }
    worst = std::max(worst, all);
  }
  return worst / (w.total() / (s.by_heads * s.by_sequence));
}

}  // namespace

TEST_CASE("db-SP: a uniform mask is even, no other is more than that, and to balance never makes it worse") {
  std::mt19937 random(1);
  int better = 0;
  for (int n = 0; n < 100; ++n)
    for (const auto& [by_heads, by_sequence] : {std::pair(1, 8), {8, 1}, {2, 4}, {4, 2}, {1, 1}}) {
      CHECK(imbalance_of(block_loads::uniform(8, 16),
                         split_in_order(block_loads::uniform(8, 16), by_heads, by_sequence)) == Approx(1));
      CHECK(imbalance_of(block_loads::uniform(8, 16),
                         balanced_split(block_loads::uniform(8, 16), by_heads, by_sequence)) == Approx(1));
      const block_loads w = drawn(random, 8, 16);
      const attention_split plain = split_in_order(w, by_heads, by_sequence),
                            even = balanced_split(w, by_heads, by_sequence);
      REQUIRE(imbalance_of(w, plain) == Approx(by_definition(w, plain)));
      REQUIRE(imbalance_of(w, even) == Approx(by_definition(w, even)));
      REQUIRE(imbalance_of(w, plain) >= 1 - 1e-12);
      REQUIRE(imbalance_of(w, even) >= 1 - 1e-12);
      REQUIRE(imbalance_of(w, even) <= imbalance_of(w, plain));
      better += imbalance_of(w, even) < imbalance_of(w, plain);
      for (int g = 0; g < by_heads; ++g) {  // as many of all for each
        CHECK(std::count(even.group.begin(), even.group.end(), g) == 8 / by_heads);
        for (const auto* const at : {&even.query_at, &even.key_at})
          for (int r = 0; r < by_sequence; ++r)
            CHECK(std::count((*at)[static_cast<std::size_t>(g)].begin(), (*at)[static_cast<std::size_t>(g)].end(), r) ==
                  16 / by_sequence);
      }
    }
  CHECK(better > 200);
  CHECK_THROWS_AS(split_in_order(block_loads::uniform(8, 16), 3, 1), bad_input);
  CHECK_THROWS_AS(split_in_order({8, 16, {1}}, 1, 1), bad_input);
}

TEST_CASE("db-SP: heads that weigh 8 to 1 in two groups are 1.444 uneven as they lie, and even when placed") {
  block_loads w = block_loads::uniform(8, 1);
  for (int h = 0; h < 8; ++h) w(h, 0, 0) = 8 - h;
  CHECK(imbalance_of(w, split_in_order(w, 2, 1)) == Approx(26.0 / 18));
  CHECK(imbalance_of(w, balanced_split(w, 2, 1)) == Approx(1));
}

TEST_CASE("db-SP: degrees by density are those its own constants give, and always the quickest of all") {
  attention_times t;  // those of its repository, for 8 GPUs
  t.all_to_all = {{2, 1.6}, {4, 3}, {8, 3.6}}, t.send = {{2, 9}, {4, 4.5}, {8, 2.3}}, t.dense = 80, t.launch = 0.5;
  const auto even = [](int, int) { return 1.0; };
  for (int n = 1; n < 1000; ++n) {
    const double density = n / 1000.0;
    const attention_choice c = best_attention_split(t, 8, density, even);
    CHECK(c.by_heads == (density < 0.1785 ? 8 : density < 0.1933 ? 1 : 2));
    for (const int by_heads : {1, 2, 4, 8}) CHECK(c.ms <= t.ms(by_heads, 8 / by_heads, density, 1));
    CHECK(c.ms == t.ms(c.by_heads, c.by_sequence, density, 1));
  }
  CHECK_THROWS_AS(best_attention_split(t, 16, 0.5, even), bad_input);
}

}  // namespace sparse_tests
