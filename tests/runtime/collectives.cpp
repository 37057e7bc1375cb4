// Collectives along several axes of a mesh at once: plans send as few as they may, where that is priced cheaper, and
// train as one rank does.
#include "../catch.hpp"
#include "../from_environment.hpp"

#include "small.hpp"

#include <cfp/plan/machine_search.hpp>
#include <cfp/session/race.hpp>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace collectives_tests {

using namespace cfp;
using namespace cfp::families;
using namespace small_tests;

namespace {

struct planned {
  graph g;
  mesh_shape mesh;
  decision_graph d;
  std::vector<std::pair<std::string, std::vector<int>>> plans;  // their choices
};

/// The plans people use, what they leave open solved.
planned usual(const graph& forward, const mesh_shape& mesh) {
  planned out{differentiate(refine(forward)), mesh, {}, {}};
  out.d = decisions(out.g, parallel_blocks(out.g), mesh, axis_choice::regathered);
  machine_options options;
  options.lowered_for = sizeof(float);
  machine_search search(out.g, mesh, out.d, plain_machine(mesh, 1e12, 1e11, 5e-6, {{1e-5, 1e9}}), options);
  for (const named_plan& p : usual_plans(mesh, false))
    if (const auto found = search.usual(p)) out.plans.emplace_back(p.name, found->p.choices);
  return out;
}

graph tiny_llama() {
  transformer c = read_decoder(tiny("llama"));
  c.batch = 4;
  c.sequence = 8;
  return decoder(c);
}

long calls(const collective_count& n) {
  long out = 0;
  for (const long c : n.calls) out += c;
  return out;
}

target along_several(long real_bytes) {
  target out = real_bytes;
  out.prices = &links_alike;
  return out;
}

/// A tensor on 2 x 2 ranks that owes a sum along both axes, and is wanted whole.
long calls_to_complete(const step_prices* prices, long size) {
  const mesh_shape mesh = mesh_of({2, 2});
  partition parts = partition::replicated(1);
  parts.partial[0].owed = parts.partial[1].owed = true;
  known_conversions ways(prices);
  return ways({{size}, 1}, 4, mesh, parts, partition::replicated(1)).collectives();
}

}  // namespace

TEST_CASE("a sum along two axes is one all-reduce where links are alike, and three steps where the outer is slow") {
  CHECK(calls_to_complete(nullptr, 1 << 20) == 3);
  CHECK(calls_to_complete(&links_alike, 1 << 20) == 1);
  CHECK(calls_to_complete(&links_alike, 1) == 1);
  const mesh_shape mesh = mesh_of({2, 2});
  const described_prices slow_outside(plain_machine(mesh, 1e13, 1e12, 5e-6, {{1e-5, 1e9}, {1e-5, 1e11}}), mesh);
  CHECK(calls_to_complete(&slow_outside, 1 << 24) == 3);
  CHECK(calls_to_complete(&slow_outside, 1 << 8) == 1);
}

TEST_CASE("partitions of one rank have one number if and only if they are equal") {
  std::mt19937 random(5);
  std::vector<partition> all;
  for (int n = 0; n < 1500; ++n) {
    partition p = partition::replicated(2);
    for (const int axis : {3, 1, 0, 2})
      if (const auto what = static_cast<int>(random() % 6); what < 2) p.split(what, axis);
      else if (what < 5) p.partial[axis] = {true, static_cast<reduction>(what - 2)};
    all.push_back(p);
  }
  int equal = 0;
  for (std::size_t a = 0; a < all.size(); ++a)
    for (std::size_t b = 0; b < a; ++b) {
      REQUIRE((number_of(all[a]) == number_of(all[b])) == (all[a] == all[b]));
      equal += all[a] == all[b];
    }
  CHECK(equal > 200);
}

TEST_CASE("plans on two axes send no more bytes, and fewer collectives, along several at once", "[heavy]") {
  for (const bool is_gpt : {true, false}) {
    const planned p = usual(is_gpt ? decoder(tiny_config()) : tiny_llama(), mesh_of({2, 2}));
    CHECK(p.plans.size() >= 9);
    const auto weights = std::count_if(p.g.values.begin(), p.g.values.end(),
                                       [](const value& v) { return v.role == value_role::weight && v.producer < 0; });
    for (const auto& [name, choices] : p.plans) {
      INFO((is_gpt ? "gpt " : "llama ") << name);
      const auto sent = [&, &label = name, &of = choices](const target& on) {
        return count_collectives(realise(label, p.g, p.mesh, p.d, of, on).code, p.g);
      };
      const collective_count one_by_one = sent(sizeof(float)), at_once = sent(along_several(sizeof(float)));
      CHECK(at_once.total_bytes() <= one_by_one.total_bytes());
      CHECK(calls(at_once) < calls(one_by_one));
      if (name != "data_parallel") continue;  // each gradient and the loss: one all-reduce over all four ranks
      CHECK(calls(at_once) == weights + 1);
      CHECK(calls(one_by_one) == 3 * calls(at_once) - 1);  // of the loss, one number, there are no pieces
    }
  }
}

TEST_CASE("weights that rest in pieces along two axes are gathered and scattered by as many collectives as along one") {
  const graph forward = decoder(tiny_config());
  const planned on_two = usual(forward, mesh_of({2, 2})), on_one = usual(forward, mesh_of({4}));
  const auto sent = [](const planned& p, const char* label) {
    const auto at = std::find_if(p.plans.begin(), p.plans.end(), [&](const auto& x) { return x.first == label; });
    REQUIRE(at != p.plans.end());
    return count_collectives(realise(label, p.g, p.mesh, p.d, at->second, along_several(sizeof(float))).code, p.g);
  };
  for (const char* label : {"zero1", "zero2", "zero3"}) {
    INFO(label);
    CHECK(sent(on_two, label) == sent(on_one, label));
  }
}

TEST_CASE("plans with collectives along several axes train as one rank does, and send what is said") {
  for (const std::vector<int>& sizes : {std::vector<int>{2, 2}, {2, 1, 2}}) {
    if (sanitized && sizes.size() > 2) continue;
    const planned p = usual(tiny_llama(), mesh_of({sizes[0], sizes[1], sizes.size() > 2 ? sizes[2] : 1}));
    const byte_text text = text_for(p.g);
    const trained alone = train_on(single(p.g, sizeof(double)), p.g, text, 2, 3);
    CHECK(all_changed(alone));
    for (const auto& [name, choices] : p.plans) {
      if (name != "data_parallel" && name != "tensor_sequence" && name != "ulysses" && name != "zero2") continue;
      INFO(name << " on " << to_string(p.mesh));
      schedule order;
      order.overlap = name == "zero2";
      const plan together = realise(name, p.g, p.mesh, p.d, choices, along_several(sizeof(double)), order);
      CHECK(std::any_of(together.code.code.begin(), together.code.code.end(),
                        [](const instruction& i) { return i.kind == instruction::reshard && i.step.axes != 0; }));
      const difference apart = compare(alone, train_on(together.code, p.g, text, 2, 3), p.g);
      CHECK(apart.loss <= 1e-10);
      INFO("worst tensor " << apart.worst);
      CHECK(apart.parameters <= 1e-7);
      const auto seen = race(*ranks_for(together.code), {together.code}, p.g, text, {1, 3, {}});
      CHECK(seen[0].sent == count_collectives(together.code, p.g));
    }
  }
}

}  // namespace collectives_tests
