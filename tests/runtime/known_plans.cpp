// The plans people know come out of the search where the machine favours them: nothing is run, the machine is
// described.
#include "../catch.hpp"

#include "small.hpp"

#include <cfp/plan/machine_search.hpp>
#include <cfp/profile/machine/roofline.hpp>

namespace known_plans_tests {

using namespace cfp;
using namespace cfp::families;
using namespace small_tests;

namespace {

struct found {
  graph g;
  mesh_shape mesh;
  decision_graph d;
  plan p;

  collective_count sent() const { return count_collectives(p.code, g); }
  // "c_attn data=batch"
  std::string strategy(const std::string& part) const {
    for (std::size_t n = 0; n < d.nodes.size(); ++n)
      if (d.nodes[n].kind == decision::strategy_of_part && d.nodes[n].label == part)
        return d.nodes[n].names[static_cast<std::size_t>(p.choices[n])];
    return "no part " + part;
  }
};

machine links(const mesh_shape& mesh, double bandwidth) {
  return plain_machine(mesh, 1e14, 2e12, 5e-6, {{1e-5, bandwidth}});
}

found search(const graph& forward, const mesh_shape& mesh, double bandwidth, std::optional<long> limit = {}) {
  found f{differentiate(refine(forward)), mesh, {}, {}};
  f.d = decisions(f.g, parallel_blocks(f.g), mesh, limit ? axis_choice::regathered : axis_choice::scattered);
  cost_graph costs = roofline(f.g, mesh, f.d, links(mesh, bandwidth)).build();
  costs.memory_limit = limit;
  const solution s = solve(costs);
  REQUIRE(s.feasible);
  CHECK(s.optimal);
  f.p = realise("found", f.g, mesh, f.d, s.choices);
  return f;
}

mesh_shape along(const char* label, int size) {
  mesh_shape m;
  m.axes.push({name(label), size});
  return m;
}

transformer wide(long layers, long batch, long sequence, long width) {
  transformer c = gpt2();
  c.layers = layers;
  c.heads = 16;
  c.width = width;
  c.vocabulary = 2048;
  c.batch = batch;
  c.positions = c.sequence = sequence;
  return c;
}

}  // namespace

TEST_CASE("small batches on a wide model: columns, then rows") {
  const long layers = 2, b = 2, seq = 64, h = 4096, t = 4;
  const found f = search(decoder(wide(layers, b, seq, h)), along("model", t), 1e10);
  for (const char* layer : {"h.0", "h.1"}) {
    CHECK(f.strategy(layer + std::string(".attn.c_attn.linear")) == "model=heads");
    CHECK(f.strategy(layer + std::string(".attn.c_proj.linear")) == "model=heads");
    CHECK(f.strategy(layer + std::string(".mlp.c_fc.linear")) == "model=hidden");
    CHECK(f.strategy(layer + std::string(".mlp.c_proj.linear")) == "model=hidden");
  }
  const collective_count n = f.sent();  // 2 forward and 2 backward per layer, 8 b s h (t-1)/t elements
  CHECK(n.calls == decltype(n.calls){4 * layers, 0, 0, 0, 0});
  CHECK(n.total_bytes() == layers * 8 * b * seq * h * (t - 1) / t * 4);
}

TEST_CASE("large batches on a narrow model: data parallel, only gradients of weights are reduced") {
  const found f = search(decoder(wide(2, 32, 512, 256)), along("data", 4), 1e10);
  long weights = 0, bytes = 0;
  for (const value& v : f.g.values)
    if (v.role == value_role::weight && v.producer < 0) ++weights, bytes += 4 * elements(v.shape);
  const collective_count n = f.sent();
  CHECK(n.calls == decltype(n.calls){weights + 1, 0, 0, 0, 0});  // and the loss
  CHECK(n.total_bytes() == 2 * 3 * (bytes + 4) / 4);
}

TEST_CASE("many experts: one all-to-all each way, forward and backward") {
  transformer c = wide(2, 32, 512, 1024);
  c.period = 2;
  c.experts = {.count = 8, .hidden = 8192, .group = 2048, .period = 2, .first = 1, .called = "moe"};
  const found f = search(decoder(c), along("expert", 8), 2e10);
  CHECK(f.strategy("h.1.moe.experts.w1.expert_dense") == "expert=experts");
  CHECK(f.strategy("h.1.moe.experts.w2.expert_dense") == "expert=experts");
  CHECK(f.strategy("h.1.attn.c_proj.linear").starts_with("expert=groups"));
  CHECK(f.sent().calls[static_cast<std::size_t>(collective_kind::all_to_all)] == 4);
}

TEST_CASE(
    "less memory: weights, gradients and optimizer state are scattered, and gathered anew where that does not "
    "suffice") {
  const transformer c = wide(4, 48, 64, 512);
  const double slow = 4e9;  // so that nothing is scattered unless it must be
  const found rich = search(decoder(c), along("data", 4), slow);
  const auto resting = [](const found& f, const char* text) {
    int n = 0;
    for (std::size_t i = 0; i < f.d.nodes.size(); ++i)
      n += f.d.nodes[i].names[static_cast<std::size_t>(f.p.choices[i])].find(text) != std::string::npos;
    return n;
  };
  CHECK(resting(rich, "/") == 0);
  const found half = search(decoder(c), along("data", 4), slow, predicted_peak(rich.p.code) / 2);
  CHECK(predicted_peak(half.p.code) <= predicted_peak(rich.p.code) / 2);
  CHECK(resting(half, "/scattered") >= 8);
  CHECK(half.sent().calls[static_cast<std::size_t>(collective_kind::reduce_scatter)] >= 8);
  // the least memory there is
  const decision_graph d = decisions(rich.g, parallel_blocks(rich.g), rich.mesh, axis_choice::regathered);
  cost_graph costs = roofline(rich.g, rich.mesh, d, links(rich.mesh, slow)).build();
  costs.memory_limit = 1;
  const solution none = solve(costs);
  REQUIRE_FALSE(none.feasible);
  REQUIRE(none.least_memory);
  const found least = search(decoder(c), along("data", 4), slow, static_cast<long>(*none.least_memory));
  CHECK(resting(least, "/regathered") > 0);
  CHECK(predicted_peak(least.p.code) < predicted_peak(half.p.code));
}

TEST_CASE("a known plan adds the gradients of a shared weight as parts of sums, and scatters them once") {
  const graph g = differentiate(refine(decoder(tiny_config())));
  for (const int ranks : {2, 4}) {
    const mesh_shape mesh = along("data", ranks);
    const decision_graph d = decisions(g, parallel_blocks(g), mesh, axis_choice::regathered);
    machine_options options;
    options.lowered_for = sizeof(float);
    const machine fast_links = plain_machine(mesh, 1e12, 1e11, 5e-6, {{1e-5, 1e11}});
    machine_search search(g, mesh, d, fast_links, options);
    for (const named_plan& n : usual_plans(mesh, false)) {
      if (n.name != "zero1" && n.name != "zero2") continue;
      const std::optional<evaluated> found = search.usual(n);
      REQUIRE(found);
      int scattered = 0;
      for (const instruction& i : found->p.code.code) {
        const value& v = g[found->p.code[i.in[0]].value];
        scattered += i.kind == instruction::reshard && i.step.kind == conversion_step::reduce_scatter &&
                     v.label.view().starts_with("wte.weight");
      }
      INFO(n.name << " on " << ranks);
      CHECK(scattered == 1);
    }
  }
}

}  // namespace known_plans_tests
