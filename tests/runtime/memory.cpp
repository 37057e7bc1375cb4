// What a rank really takes for a program is what was planned and little more.
#include "../catch.hpp"

#include "../counting_new.hpp"
#include "small.hpp"

#include <cfp/backend/fill.hpp>
#include <cfp/program/find_saved.hpp>
#include <cfp/session/race.hpp>

#include <set>

namespace memory_tests {

using namespace cfp;
using namespace cfp::families;
using namespace small_tests;

namespace {

// The same choices, with all weights and state on devices.
std::vector<int> without_host(std::vector<int> choices, const decision_graph& d) {
  for (std::size_t n = 0; n < choices.size(); ++n)
    if (d.nodes[n].furthest_rest() > keeping::on_device) choices[n] %= static_cast<int>(d.nodes[n].choices() / 3);
  return choices;
}

void check_models(const graph& g, const mesh_shape& mesh, std::mt19937& random, number type) {
  const auto ranks = threads(mesh, type);
  const block_structure blocks = parallel_blocks(g);
  const recomputation again(g, blocks, segments(g, blocks), find_saved(g, ranks->lowered_for()));
  const decision_graph all_kept = decisions(g, blocks, mesh, axis_choice::regathered),
                       less = decisions(g, blocks, mesh, axis_choice::regathered, {}, &again, keeping::weights_on_host);
  long most_on_host = 0, most_of_forward = 0;
  for (int n = 0; n < 6; ++n) {
    schedule order;
    order.overlap = n % 2 == 1;
    order.ahead = 1 + n % 3;
    const plan p = random_plan(g, mesh, n < 3 ? all_kept : less, random, ranks->lowered_for().real_bytes, order);
    const program& code = p.code;
    const long planned = code.arena_bytes + code.persistent_bytes(), most = predicted_peak(code),
               on_host = code.host_bytes(true, true);
    most_on_host = std::max(most_on_host, on_host);
    if (n >= 3) {
      const plan on_devices = realise("", g, mesh, less, without_host(p.choices, less), ranks->lowered_for());
      CHECK(on_devices.code.persistent_bytes() == code.persistent_bytes() + code.host_bytes(true, false));
      most_of_forward = std::max(most_of_forward, code.host_bytes(false, true));
    }
    std::vector<double> taken(static_cast<std::size_t>(mesh.devices())), left(taken.size()), held(taken.size()),
        held_after(taken.size());
    ranks->run([&](rank& r) {
      const auto me = static_cast<std::size_t>(r.number());
      const long held_before = r.bytes(), base = counting::bytes_now;
      counting::bytes_peak = base;
      auto loaded = r.load(code, g, 3);
      for (long s = 1; s <= 2; ++s) loaded->step(s, code.passes);
      taken[me] = static_cast<double>(counting::bytes_peak - base);
      held[me] = static_cast<double>(r.bytes() - held_before);
      loaded.reset();
      held_after[me] = static_cast<double>(r.bytes() - held_before);
      const long kept = counting::bytes_now;  // by the device, for all its programs
      r.load(code, g, 3)->step(1, code.passes);
      left[me] = static_cast<double>(counting::bytes_now - kept);
      r.barrier();
    });
    INFO("case " << n << " on " << mesh.devices() << " ranks in " << name_of(type));
    for (std::size_t k = 0; k < taken.size(); ++k) {
      CHECK(taken[k] >= static_cast<double>(planned + on_host));
      CHECK(taken[k] <= static_cast<double>(most + on_host));
      CHECK(held[k] >= static_cast<double>(planned));
      CHECK(held[k] <= static_cast<double>(most));
      CHECK(held[k] <= taken[k]);
      CHECK(held_after[k] == 0);
      CHECK(left[k] == 0);
    }
    const observed seen = race(*ranks, {code}, g, text_for(g), {1, 3, {}})[0];
    CHECK(static_cast<double>(seen.peak_bytes) == *std::max_element(held.begin(), held.end()));
  }
  CHECK(most_on_host > 0);
  CHECK(most_of_forward > 0);
}

}  // namespace

TEST_CASE("a rank takes no more memory than is predicted", "[heavy]") {
  std::mt19937 random(5);
  training how;
  how.clip = 1;
  for (const int pieces : {1, 2}) {
    how.micro_batches = pieces;
    transformer c = tiny_config();
    c.batch = 4 / pieces;
    const graph g = differentiate(refine(decoder(c)), how);
    for (const mesh_shape& mesh : {mesh_of({1}), mesh_of({2}), mesh_of({2, 2})})
      for (const number type : {number::float64, number::float32, number::bfloat16})
        check_models(g, mesh, random, type);
  }
}

TEST_CASE("a buffer gets the lowest place that is free while it lives") {
  std::mt19937 random(7);
  const auto below_of = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  for (int round = 0; round < 100; ++round) {
    const int instructions = 1 + below_of(round % 2 == 0 ? 400 : 20000);
    cfp::detail::placed_pieces placed(instructions);
    std::vector<cfp::detail::placed_pieces::piece> all;
    for (int n = 0; n < 60; ++n) {
      lifetime when;
      when.from = below_of(instructions + 1);
      when.to = below_of(2) == 0 ? std::min(instructions, when.from + below_of(8))
                                 : when.from + below_of(instructions + 1 - when.from);
      const long bytes = 1 + below_of(1000);
      long at = 0;
      for (bool moved = true; moved;) {
        moved = false;
        for (const auto& other : all) {
          const bool meets =
              other.when.from <= when.to && when.from <= other.when.to && other.from < at + bytes && at < other.to;
          if (meets) at = (other.to + memory_alignment - 1) / memory_alignment * memory_alignment;
          moved = moved || meets;
        }
      }
      REQUIRE(placed.lowest(when, bytes) == at);
      placed.put({when, at, at + bytes});
      all.push_back({when, at, at + bytes});
    }
  }
}

TEST_CASE("a weight of many numbers is filled alike whole, by several threads, and in pieces, by one each") {
  value v;
  v.label = long_name("large");
  v.shape = {{3, 1 << 20}, 2};
  v.fill.constant = 0.5, v.fill.deviation = 0.25;
  std::vector<float> all(static_cast<std::size_t>(elements(v.shape)));
  fill_numbers(all.data(), v, partition::replicated(2), mesh_of({1}), 0, 5);
  const mesh_shape mesh = mesh_of({4});
  partition held = partition::replicated(2);
  held.dims[1].push(0);
  for (int device = 0; device < 4; ++device) {
    std::vector<float> piece(all.size() / 4);
    fill_numbers(piece.data(), v, held, mesh, device, 5);
    long apart = 0;
    each_element(v.shape, held, mesh, device, [&](long i, long global) {
      apart += piece[static_cast<std::size_t>(i)] != all[static_cast<std::size_t>(global)];
    });
    CHECK(apart == 0);
  }
  CHECK(std::set<float>(all.begin(), all.end()).size() > all.size() / 10);  // and not with one number
}

}  // namespace memory_tests
