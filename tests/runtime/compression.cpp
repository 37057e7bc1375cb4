// Sums of gradients that are sent in fewer bytes: what arrives, what is kept for later, what plans make of it.
#include "../catch.hpp"

#include "counted.hpp"
#include "small.hpp"

#include <cfp/backend/compressed_conversion.hpp>
#include <cfp/backend/host/coder.hpp>
#include <cfp/block/decisions.hpp>
#include <cfp/communicator/threads/run_ranks.hpp>
#include <cfp/model/read_mesh.hpp>
#include <cfp/profile/machine/described_prices.hpp>
#include <cfp/program/count_collectives.hpp>

#include <cmath>
#include <limits>
#include <mutex>
#include <numeric>

namespace compression_tests {

using namespace cfp;
using namespace cfp::families;
using namespace small_tests;

namespace {

constexpr compression forms[] = {compression::bfloat16, compression::blocks8, compression::largest};

std::vector<double> normal(std::mt19937& random, long n) {
  std::normal_distribution<double> d;
  std::vector<double> out(static_cast<std::size_t>(n));
  for (double& x : out) x = d(random) * std::exp(d(random));
  return out;
}

struct sent {
  std::vector<std::byte> bytes;
  std::vector<double> arrived, left_over;
};
sent send(compression form, const std::vector<double>& x, std::vector<double> left_over) {
  const auto n = static_cast<long>(x.size());
  sent out{std::vector<std::byte>(static_cast<std::size_t>(compressed_bytes(form, n))), std::vector<double>(x.size()),
           std::move(left_over)};
  const host::coder by;
  by.encode(form, x.data(), n, out.left_over.data(), n, 1, out.bytes.data());
  by.decode(form, out.bytes.data(), n, 1, 1, out.arrived.data(), n);
  return out;
}

}  // namespace

TEST_CASE("a block arrives as near as its bytes allow, and what is lost is left over") {
  CHECK(compressed_bytes(compression::none, 1000) == 0);
  CHECK(compressed_bytes(compression::bfloat16, 1000) == 4 * 512);
  CHECK(compressed_bytes(compression::blocks8, 1000) == 4 * 260);
  CHECK(compressed_bytes(compression::largest, 1000) == 4 * 24);
  std::mt19937 random(3);
  for (int round = 0; round < 100; ++round)
    for (const compression form : forms) {
      const long n = 1 + static_cast<long>(random() % 700);
      const std::vector<double> x = normal(random, n), before = normal(random, n);
      const sent s = send(form, x, before);
      INFO(name_of(form) << ", " << n << " numbers");
      for (long from = 0; from < n; from += compressed_numbers) {
        std::vector<double> all, exactly;  // magnitudes of the block
        for (long i = from; i < std::min(n, from + compressed_numbers); ++i) {
          const auto at = static_cast<std::size_t>(i);
          const double whole = x[at] + before[at];
          all.push_back(std::abs(whole));
          if (s.arrived[at] != 0) exactly.push_back(std::abs(whole));
          CHECK(s.arrived[at] + s.left_over[at] == Approx(whole).margin(1e-12));
          if (form == compression::bfloat16) CHECK(std::abs(s.left_over[at]) <= std::abs(whole) / 256);
        }
        std::sort(all.rbegin(), all.rend());
        std::sort(exactly.rbegin(), exactly.rend());
        if (form == compression::blocks8)
          for (long i = from; i < std::min(n, from + compressed_numbers); ++i) {
            const auto at = static_cast<std::size_t>(i);
            const double part = std::abs(x[at] + before[at]) / all[0];  // codes lie 4 part^(3/4) / 127 apart
            CHECK(std::abs(s.left_over[at]) <= all[0] * (2.1 / 127 * std::pow(part, 0.75) + 1e-7));
          }
        if (form != compression::largest) continue;
        all.resize(std::min<std::size_t>(all.size(), largest_numbers));
        CHECK(exactly == all);
      }
    }
}

TEST_CASE("what is no number arrives as none, and is not left over") {
  for (const double wrong : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()})
    for (const compression form : forms) {
      std::vector<double> x(300, 1);
      x[5] = wrong;
      const sent s = send(form, x, std::vector<double>(300, 0));
      INFO(name_of(form) << " of " << wrong);
      CHECK_FALSE(std::isfinite(s.arrived[5]));
      for (const double rest : s.left_over) CHECK(std::isfinite(rest));
    }
}

TEST_CASE("ranks sum up what was sent, and what is lost of a sum is in the next ones") {
  std::mt19937 random(5);
  for (const int ranks : {1, 2, 3, 4})
    for (const long numbers : {1l, 5l, 255l, 1024l, 1700l})
      for (const bool all : {true, false})
        for (const compression form : forms) {
          if (!all && numbers % ranks != 0) continue;
          conversion_step step;
          step.kind = all ? conversion_step::all_reduce : conversion_step::reduce_scatter;
          step.sent_as = form;
          const compressed_sum s(step, numbers, ranks);
          std::vector<std::vector<double>> given;
          std::vector<double> right(static_cast<std::size_t>(numbers)), arrived(right.size()), kept(right.size());
          for (int r = 0; r < ranks; ++r) {
            given.push_back(normal(random, numbers));
            for (std::size_t i = 0; i < right.size(); ++i) right[i] += given.back()[i];
          }
          constexpr int times = 20;
          std::mutex one;
          std::vector<long> bytes;
          std::vector<std::vector<double>> whole(static_cast<std::size_t>(ranks));
          run_ranks(ranks, [&](rank_context& rank) {
            const auto me = static_cast<std::size_t>(rank.rank);
            std::vector<double> out(right.size()), left_over(static_cast<std::size_t>(s.left_over()));
            std::vector<std::byte> memory(static_cast<std::size_t>(s.scratch_bytes()));
            const long mine = all ? 0 : rank.rank * s.piece, many = all ? numbers : s.piece;
            std::vector<double> summed(static_cast<std::size_t>(many));
            for (int t = 0; t < times; ++t) {
              sum_compressed(host::coder(), form, s, given[me].data(), numbers, out.data(), memory.data(),
                             left_over.data(), rank.along(1));
              for (std::size_t i = 0; i < summed.size(); ++i) summed[i] += out[i];
            }
            const traffic& n = rank.group(0).counted();
            const std::lock_guard lock(one);
            bytes.push_back(std::accumulate(n.bytes.begin(), n.bytes.end(), 0l));
            whole[me] = summed;
            for (std::size_t i = 0; i < summed.size(); ++i)
              if (!all || rank.rank == 0) arrived[static_cast<std::size_t>(mine) + i] = summed[i];
            for (std::size_t i = 0; i < right.size(); ++i) kept[i] += left_over[i];
            if (all)  // of the sums that were sent to all, the piece that this rank added up
              for (long i = 0; i < s.piece && rank.rank * s.piece + i < numbers; ++i)
                kept[static_cast<std::size_t>(rank.rank * s.piece + i)] +=
                    left_over[static_cast<std::size_t>(s.pieces * s.piece + i)];
          });
          INFO(ranks << " ranks, " << numbers << " numbers, " << name_of(form) << (all ? ", to all" : ", in pieces"));
          double apart = 0;
          for (std::size_t i = 0; i < right.size(); ++i)
            apart = std::max(apart, std::abs(arrived[i] + kept[i] - times * right[i]));
          CHECK(apart < 1e-10);
          CHECK(bytes == std::vector<long>(given.size(), times * s.sent()));
          if (all)
            for (const std::vector<double>& w : whole) CHECK(w == whole[0]);
        }
}

TEST_CASE("gradients are sent in fewer bytes where that takes less time") {
  const mesh_shape mesh = mesh_of({4});
  partition parts = partition::replicated(1);
  parts.partial[0].owed = true;
  const auto form_of = [&](const step_prices& prices, long size, compression form) {
    known_conversions ways(&prices);
    const conversion exact = ways({{size}, 1}, 2, mesh, parts, partition::replicated(1));
    const conversion c = ways({{size}, 1}, 2, mesh, parts, partition::replicated(1), form);
    REQUIRE(c.steps.size() == 1);
    CHECK((c.price < exact.price) == (c.steps[0].sent_as != compression::none));
    return c.steps[0].sent_as;
  };
  const described_prices slow(plain_machine(mesh, 1e13, 1e12, 5e-6, {{1e-5, 1e9}}), mesh);
  const described_prices fast(plain_machine(mesh, 1e13, 1e12, 5e-6, {{1e-5, 1e13}}), mesh);
  CHECK(form_of(slow, 1 << 24, compression::blocks8) == compression::blocks8);
  CHECK(form_of(slow, 1 << 24, compression::largest) == compression::largest);
  CHECK(form_of(slow, 1 << 24, compression::bfloat16) == compression::none);  // as wide as it is
  CHECK(form_of(slow, 1 << 8, compression::blocks8) == compression::none);
  CHECK(form_of(fast, 1 << 24, compression::blocks8) == compression::none);
  CHECK(form_of(links_alike, 1 << 16, compression::blocks8) == compression::blocks8);
  CHECK(form_of(links_alike, 16, compression::blocks8) == compression::none);
}

TEST_CASE("with gradients sent in fewer bytes plans train nearly as with all of them", "[heavy]") {
  for (const char* name : {"gpt", "mixtral"}) {
    const int micro_batches = name[0] == 'g' ? 1 : 2;
    training how;
    how.rate = 1e-3;
    how.clip = 1;
    how.micro_batches = micro_batches;
    model_sizes sizes;
    sizes.batch = 4 / micro_batches;
    sizes.sequence = 8;
    graph g = differentiate(refine(build_model(tiny(name), sizes).forward), how);
    const trained alone = train_on(single(g, sizeof(double)), g, text_for(g), 30, 3);
    CHECK(alone.loss.back() < 0.9 * alone.loss.front());
    const mesh_shape mesh = micro_batches > 1 ? mesh_of({2}) : mesh_of({2, 2});
    for (const compression form : forms) {
      g.gradients = compression::none;
      const decision_graph d = decisions(g, parallel_blocks(g), mesh, axis_choice::regathered);
      std::mt19937 random(7);
      const std::vector<int> choices = random_choices(d, random);
      target on = sizeof(float);
      on.prices = &links_alike;
      const plan exact = realise("exact", g, mesh, d, choices, on);
      g.gradients = form;
      const plan fewer = realise("fewer", g, mesh, d, choices, on);
      INFO(name << " in " << micro_batches << " pieces on " << to_string(mesh) << ", gradients as " << name_of(form));
      const long all = count_collectives(exact.code, g).total_bytes();
      const collective_count sent = count_collectives(fewer.code, g);
      CHECK(sent.total_bytes() < all);
      shared_batches data(g, text_for(g));
      std::vector<collective_count> counts(static_cast<std::size_t>(mesh.devices()));
      std::vector<long> peaks(counts.size());
      ranks_for(fewer.code)->run([&](rank& r) {
        const auto run = r.load(fewer.code, g, 3);
        r.reset_counted();
        one_step(*run, fewer.code, data, 1);
        counts[static_cast<std::size_t>(r.number())] = counted(r);
        peaks[static_cast<std::size_t>(r.number())] = r.peak_bytes();
      });
      CHECK(counts == std::vector<collective_count>(counts.size(), sent));
      for (const long peak : peaks) {
        CHECK(peak <= predicted_peak(fewer.code));
        CHECK(predicted_peak(fewer.code) - memory_allowance(fewer.code) <= peak);
      }
      // Of the largest each number is sent every 32nd time on average: that learns as much in a few times the steps.
      const long steps = form == compression::largest ? 120 : 30;
      const trained out = train_on(fewer.code, g, text_for(g), steps, 3);
      CHECK(all_changed(out));
      CHECK(out.loss != train_on(exact.code, g, text_for(g), steps, 3).loss);
      const auto last = [](const std::vector<double>& x, long n) {
        return std::accumulate(x.end() - n, x.end(), 0.0) / static_cast<double>(n);
      };
      if (form == compression::largest) CHECK(last(out.loss, 10) < last(alone.loss, 10));
      else CHECK(last(out.loss, 30) == Approx(last(alone.loss, 30)).epsilon(0.01));
    }
  }
}

}  // namespace compression_tests
