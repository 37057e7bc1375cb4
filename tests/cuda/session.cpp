// Ranks with emulated GPUs as a backend: what they keep and count, and a whole session on them.
#include "../catch.hpp"
#include "../own_operators.hpp"

#include "../runtime/small.hpp"

#include <cfp/backend/emulated_gpus.hpp>
#include <cfp/backend/host/kernels_of.hpp>
#include <cfp/plan/named.hpp>
#include <cfp/plan/usual_plans.hpp>
#include <cfp/profile/machine/described_conversions.hpp>
#include <cfp/session/plan_in_stages.hpp>
#include <cfp/session/session.hpp>

#include <cstdio>
#include <numeric>
#include <optional>

namespace session_cases {

using namespace cfp;
using namespace own_operators;
using namespace small_tests;
using namespace families;

namespace {

transformer one_layer() {
  transformer c = tiny_config();
  c.embedding_dropout = c.attention_dropout = c.residual_dropout = 0;
  c.layers = 1;
  return c;
}

program data_parallel(const graph& g, const mesh_shape& mesh, const target& to) {
  const decision_graph d = decisions(g, parallel_blocks(g), mesh);
  std::vector<int> choices;
  for (const named_plan& p : usual_plans(mesh, false))
    if (p.name == "data_parallel") choices = follow(p, d, mesh);
  REQUIRE(!choices.empty());
  for (int& c : choices) c = std::max(c, 0);
  return realise("data_parallel", g, mesh, d, choices, to).code;
}

long calls(const traffic& t) { return std::accumulate(t.calls.begin(), t.calls.end(), 0l); }

// An operator of a user's own, that no kernel for GPUs knows, between two others.
inline constexpr struct halved_t : op<"... -> ...", halved_t> {
  template <class T>
  CFP_HOST_DEVICE static T apply(T x) {
    return x / T(2) + x * x / T(64);
  }
} halved;

graph halving_model() {
  model net;
  const dimension batch{"batch", 4}, sequence{"sequence", 8}, width{"width", 16}, hidden{"hidden", 32};
  const tensor tokens = net.input("tokens", {batch, sequence}, element::index, {0, 0, 256});
  const tensor targets = net.input("targets", {batch, sequence}, element::index, {0, 0, 256});
  const tensor x = lookup(net.weight("table.weight", {{"vocabulary", 256}, width}, {0, 0.5}), tokens);
  const tensor up = halved(linear(x, net.weight("up.weight", {width, hidden}, {0, 0.3})));
  const tensor logits = linear(up, net.weight("head.weight", {hidden, {"vocabulary", 256}}, {0, 0.3}));
  const tensor max = logits_max(logits), sum = logits_sum(logits, max);
  net.recorded.loss = cross_entropy(logits, targets, max, sum, 1.0 / 32).id;
  return net.recorded;
}

}  // namespace

TEST_CASE("ranks with emulated GPUs train in 16 bits, and count what they send and hold") {
  const graph g = differentiate(refine(decoder(one_layer())));
  const mesh_shape mesh = mesh_of({2});
  const byte_text text = text_for(g);
  const trained exact = train_on(single(g, sizeof(double)), g, text, 3, 3);
  for (const number type : {number::bfloat16, number::float16}) {
    const std::unique_ptr<backend> on = emulated_gpus(mesh, type);
    CHECK(on->type() == type);
    CHECK(on->mesh() == mesh);
    CHECK(on->on_this_machine() == 2);
    CHECK(on->lowered_for().real_bytes == 2);
    REQUIRE(on->lowered_for().fused != nullptr);
    const program p = data_parallel(g, mesh, on->lowered_for());
    CHECK(std::any_of(p.code.begin(), p.code.end(), [](const instruction& i) { return i.fusion >= 0; }));
    const trained narrow = train(*on, p, g, text, 3, 3);
    REQUIRE(narrow.loss.size() == 3);
    for (std::size_t s = 0; s < 3; ++s) CHECK(std::abs(narrow.loss[s] - exact.loss[s]) <= 1e-3 * exact.loss[s]);
    shared_batches batches(g, text);
    long sent = 0, held = 0, most = 0, afterwards = -1, left = -1;
    on->run([&](rank& r) {
      std::unique_ptr<loaded_program> loaded = r.load(p, g, 3);
      one_step(*loaded, p, batches, 1);
      const long mine = calls(r.counted().at(0)), bytes = r.bytes();
      r.reset_counted();
      loaded.reset();
      if (r.leads()) sent = mine, held = bytes, most = r.peak_bytes(), afterwards = calls(r.counted().at(0));
      if (r.leads()) left = r.bytes();
    });
    CHECK(sent > 0);
    CHECK(afterwards == 0);
    CHECK(held >= p.arena_bytes + p.persistent_bytes());
    CHECK(most >= held);
    CHECK(most <= predicted_peak(p));
    CHECK(left == 0);
  }
  CHECK_THROWS_WITH(emulated_gpus(mesh, number::float64),
                    "GPUs have no kernels for numbers stored as float64; take float32 or bfloat16");
}

TEST_CASE("emulated GPUs run a user's own operators by the host's kernels") {
  const graph g = differentiate(refine(halving_model()));
  const mesh_shape mesh = mesh_of({2});
  const own_kernels own = kernels_of<halved_t>();
  const byte_text text = text_for(g);
  const trained alone = train_on(single(g, sizeof(float)), g, text, 3, 3, own);
  const auto losses_in = [&](number type) {
    const std::unique_ptr<backend> on = emulated_gpus(mesh, type, own);
    return train(*on, data_parallel(g, mesh, on->lowered_for()), g, text, 3, 3);
  };
  CHECK(loss_difference(alone, losses_in(number::float32)) <= 1e-5);
  CHECK(loss_difference(alone, losses_in(number::bfloat16)) <= 1e-3);
  CHECK_THROWS_AS(losses_in(number::float16), rank_failure);
  CHECK_THROWS_AS(train(*emulated_gpus(mesh_of({1}), number::float32), single(g, sizeof(float)), g, text, 1, 3),
                  rank_failure);
}

TEST_CASE("all operators that have no kernel on emulated GPUs are named at once") {
  model net;
  const tensor y = halved(scaled_by_t<2>{}(bent(net.weight("w", {{"batch", 4}, {"width", 8}}, {0, 1}))));
  net.recorded.loss = op<"batch width, batch width -> ">{}(y, y).id;
  const graph g = differentiate(refine(net.recorded));
  const std::unique_ptr<backend> on = emulated_gpus(mesh_of({1}), number::float32, kernels_of<halved_t>());
  const program p = data_parallel(g, mesh_of({1}), on->lowered_for());
  CHECK_THROWS_WITH(on->run([&](rank& r) { r.load(p, g, 3); }),
                    Catch::Contains("operators 'bent', 'scaled_by' have no kernel for GPUs: add them with "
                                    "kernels.add<bent_t, scaled_by_t<2>>()"));
}

// Measured and trained in bfloat16, verified in float32 too.
TEST_CASE("a plan in stages that was found for a machine trains on emulated GPUs") {
  const auto model = [](long rows) {
    transformer c = one_layer();
    c.layers = 2, c.batch = rows;
    c.width = 32, c.heads = 2, c.vocabulary = 128;
    return decoder(c);
  };
  machine m = plain_machine(mesh_of({2}), 1e9, 1e9, 1e-7, {{1e-6, 2e8}});
  m.device.memory = 1l << 40;
  machine_plan_options asked;
  asked.micro_batches = 2;
  const std::optional<stages_plan> found = plan_in_stages(model, 4, m, asked, {2});
  REQUIRE(found);
  found->save_plan("emulated_stages.json");
  session_options o{.mesh = "stage=2", .on = emulated_gpus, .type = number::bfloat16};
  o.micro_batches = 2;
  session s(model(2), o);
  s.use_plan("emulated_stages.json");
  const byte_text text(some_text(), 2, 8, 5, {});
  const verification v = s.verify(text, 3);
  INFO(v.json());
  CHECK(v.holds());
  CHECK(s.compare(text, 1).counts_agree());
  std::remove("emulated_stages.json");
}

TEST_CASE("a session plans, verifies, trains and compares on emulated GPUs") {
  transformer c = one_layer();  // as small as can be: what is measured runs many times
  c.width = 32;
  c.heads = c.batch = 2;
  c.vocabulary = 128;
  const byte_text text(some_text(), c.batch, c.sequence, 5);
  session s(decoder(c), {.mesh = "data=2", .on = emulated_gpus, .type = number::bfloat16, .lazy = true});
  const found_plan& found = s.plan();
  CHECK(found.measured > 0);
  CHECK(std::any_of(found.best.code.code.begin(), found.best.code.code.end(),
                    [](const instruction& i) { return i.fusion >= 0; }));
  const verification v = s.verify(text, 3);
  INFO("losses apart by " << v.apart.loss << ", changes by " << v.apart.parameters << " of " << v.apart.worst);
  CHECK(v.holds());
  CHECK(v.stored_as == "bfloat16");
  const training_report r = s.train(text, 3);
  REQUIRE(r.loss.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) CHECK(std::abs(r.loss[i] - v.alone[i]) <= 1e-3 * v.alone[i]);
  const plan_comparison compared = s.compare(text, 1);
  CHECK(compared.plans.size() > 1);
  CHECK(compared.counts_agree());
}

}  // namespace session_cases
