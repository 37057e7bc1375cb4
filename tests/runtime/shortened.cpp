// A graph without some of its equal segments is that of a model with fewer layers, and tells what the whole one takes.
#include "../catch.hpp"

#include "../random_graph.hpp"
#include "deep_families.hpp"
#include "small.hpp"

#include <cfp/block/shortened.hpp>
#include <cfp/plan/machine_search.hpp>

#include <cmath>
#include <map>
#include <random>
#include <span>

namespace shortened_tests {

using namespace cfp;
using namespace deep_families;

namespace {

constexpr std::size_t families = few_if_slow(3);

graph trained(const graph& forward, double clip, int micro_batches) {
  training how;
  how.clip = clip;
  how.micro_batches = micro_batches;
  return differentiate(forward, how);
}

}  // namespace

TEST_CASE("a model without some of its layers is the model of fewer layers") {
  for (const family& f : known_families)
    for (const auto& [clip, passes] : {std::pair(0.0, 1), {1.0, 1}, {1.0, 2}}) {
      const graph g = trained(f.forward(10 * f.period), clip, passes),
                  less = trained(f.forward(7 * f.period), clip, passes);
      const repeats r(g, parallel_blocks(g));
      INFO(f.name << ", clip " << clip << ", micro-batches " << passes);
      std::vector<bool> left_out(r.operations.size());
      for (const equal_segments& s : equally_sharded(r, sharding::replicated(g)))
        for (int n = 1; s.count >= 5 && n <= 3; ++n) left_out[static_cast<std::size_t>(s.first + n)] = true;
      const shortened s = without(g, r, left_out).value();
      CHECK(s.g.size() == less.size());
      CHECK(s.g.value_count() == less.value_count());
      CHECK(fingerprint(s.g, all_operations(s.g)) == fingerprint(less, all_operations(less)));
      for (int o = 0; o < s.g.size(); ++o) {
        CHECK((s.g.at(o).origin < 0) == (less.at(o).origin < 0));
        CHECK((s.g.at(o).hub < 0) == (less.at(o).hub < 0));
        for (const int v : s.g.at(o).results) CHECK(s.g[v].producer == o);
      }
      CHECK(s.g[s.g.loss].label == g[g.loss].label);
    }
}

TEST_CASE("models that nobody has written are shortened to valid ones, and few of their layers tell what many take") {
  std::mt19937 random(71);
  int same_graph = 0, priced = 0;
  for (int n = 0; n < 60; ++n) {
    const random_sizes of = n % 2 == 0 ? random_sizes::scarce : random_sizes::tiny;
    std::mt19937 again = random;
    const graph g = trained(refine(random_repeated_layers(random, 14, of).forward), n % 3 == 0, 1 + n % 2),
                less = trained(refine(random_repeated_layers(again, 11, of).forward), n % 3 == 0, 1 + n % 2);
    const block_structure blocks = parallel_blocks(g);
    const repeats r(g, blocks);
    std::vector<bool> left_out(r.operations.size());
    for (const equal_segments& s : equally_sharded(r, sharding::replicated(g)))
      for (int k = 1; s.count >= 5 && k <= 3; ++k) left_out[static_cast<std::size_t>(s.first + k)] = true;
    const shortened s = without(g, r, left_out).value();
    for (int o = 0; o < s.g.size(); ++o)
      for (const int v : s.g.at(o).operands) CHECK(s.g[v].producer < o);
    if (s.g.size() == less.size()) {
      ++same_graph;
      CHECK(fingerprint(s.g, all_operations(s.g)) == fingerprint(less, all_operations(less)));
    }
    const mesh_shape mesh = small_tests::mesh_of({2});
    const decision_graph d = decisions(g, blocks, mesh, axis_choice::regathered);
    machine_options options;
    options.memory = 1L << 50;
    machine_search search(g, mesh, d, plain_machine(mesh, 1e8, 1e8, 1e-7, {{1e-6, 1e8}}), options, &r);
    std::map<const void*, int> chosen;  // alike decisions choose the same
    std::vector<int> choices;
    for (const decision& node : d.nodes) {
      const void* const kind = node.kind == decision::forms_of_tensor ? node.forms.id() : node.assigned.id();
      choices.push_back(chosen.try_emplace(kind, static_cast<int>(random() % node.choices())).first->second);
    }
    const evaluated few = search.estimate("drawn", choices), whole = search.evaluate("drawn", choices);
    if (few.whole || !std::isfinite(whole.p.additive_ms)) continue;
    ++priced;
    INFO("model " << n);
    CHECK(few.when.operators == Approx(whole.when.operators).epsilon(1e-9));
    CHECK(few.when.collectives == Approx(whole.when.collectives).epsilon(1e-9));
    CHECK(few.when.ms == Approx(whole.when.ms).epsilon(0.02));
    CHECK(static_cast<double>(few.peak) == Approx(static_cast<double>(whole.peak)).epsilon(0.1));
  }
  CHECK(same_graph > 30);
  CHECK(priced > 20);
}

TEST_CASE("few layers tell what a plan of many takes", "[heavy]") {
  int all = 0, same_time = 0, near_memory = 0;
  for (const family& f : std::span(known_families).first(families)) {
    const graph g = trained(f.forward(18 * f.period), 1, 1);
    const block_structure blocks = parallel_blocks(g);
    const repeats r(g, blocks);
    for (const mesh_shape& mesh : {small_tests::mesh_of({4}), small_tests::mesh_of({2, 2})}) {
      const decision_graph d = decisions(g, blocks, mesh, axis_choice::regathered);
      machine_options options;
      options.memory = 1L << 50;
      for (const double links : {1e9, 1e11}) {
        const machine m = plain_machine(mesh, 1e12, 1e11, 5e-6, {{1e-5, links}});
        machine_search search(g, mesh, d, m, options, &r);
        for (const named_plan& n : usual_plans(mesh, has_experts(g))) {
          const std::optional<evaluated> few = search.usual(n);
          if (!few) continue;
          INFO(f.name << " on " << to_string(mesh) << ", links of " << links << ", " << n.name);
          REQUIRE(!few->whole);
          const evaluated whole = search.evaluate(n.name, few->p.choices, few->order);
          CHECK(few->when.ms == Approx(whole.when.ms).epsilon(0.005));
          CHECK(few->when.operators == Approx(whole.when.operators).epsilon(1e-9));
          CHECK(few->when.collectives == Approx(whole.when.collectives).epsilon(1e-9));
          const double memory = static_cast<double>(few->peak) / static_cast<double>(whole.peak);
          CHECK(memory == Approx(1).margin(0.06));  // buffers may leave gaps in the one that the other has not
          ++all;
          same_time += std::abs(few->when.ms / whole.when.ms - 1) < 1e-9;
          near_memory += std::abs(memory - 1) < 0.003;
        }
      }
    }
  }
  CHECK(all > static_cast<int>(60 * families));
  CHECK(same_time > 0.9 * all);
  CHECK(near_memory > 0.95 * all);
}

TEST_CASE("a plan with other choices in some layers is priced by a few of each") {
  const graph g = trained(known_families[1].forward(40), 1, 1);
  const block_structure blocks = parallel_blocks(g);
  const repeats r(g, blocks);
  const mesh_shape mesh = small_tests::mesh_of({2, 2});
  const decision_graph d = decisions(g, blocks, mesh, axis_choice::regathered);
  machine_options options;
  options.memory = 1L << 50;
  machine_search search(g, mesh, d, plain_machine(mesh, 1e12, 1e11, 5e-6, {{1e-5, 1e10}}), options, &r);
  const std::vector<named_plan> usual = usual_plans(mesh, false);
  std::vector<evaluated> two;
  for (const char* name : {"zero3", "data_parallel+tensor"})
    for (const named_plan& n : usual)
      if (n.name == name) two.push_back(*search.usual(n));
  REQUIRE(two.size() == 2);
  for (const std::size_t change : {d.nodes.size() / 3, d.nodes.size() / 2}) {
    std::vector<int> choices = two[0].p.choices;
    for (std::size_t n = change; n < choices.size(); ++n) choices[n] = two[1].p.choices[n];
    const evaluated few = search.estimate("half", choices), whole = search.evaluate("half", choices);
    CHECK(!few.whole);
    CHECK(few.when.ms == Approx(whole.when.ms).epsilon(1e-3));
    CHECK(static_cast<double>(few.peak) == Approx(static_cast<double>(whole.peak)).epsilon(1e-2));
  }
}

}  // namespace shortened_tests
