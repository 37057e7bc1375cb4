// What a step costs at least, whatever GPU runs it: bytes that are moved and launches, bounded for GPT-2.
#include "../catch.hpp"

#include "streamed_gpus.hpp"

#include <cfp/backend/cuda/fusions.hpp>
#include <cfp/families/families.hpp>
#include <cfp/profile/work.hpp>
#include <cfp/program/lower.hpp>

namespace bound_cases {

using namespace cfp;
using namespace families;
using stand_in::seen;

namespace {

graph training_graph(transformer c) {
  c.embedding_dropout = c.attention_dropout = c.residual_dropout = 0;
  training how;
  how.clip = 1;
  return differentiate(refine(decoder(c)), how);
}
program on_one_gpu(const graph& g, const target& of) {
  mesh_shape one;
  one.axes.push({"one", 1});
  program p = lower(g, one, sharding::replicated(g), all_operations(g), of.real_bytes);
  of.complete(p, g);
  return p;
}
long computing(const program& p) {
  return std::count_if(p.code.begin(), p.code.end(), [](const instruction& i) { return !i.nothing; });
}

}  // namespace

TEST_CASE("GPT-2 124M, 16 x 1024, bfloat16: at most 15 GB of memory-bound traffic and 250 instructions a step") {
  transformer c = gpt2();  // the published one
  c.batch = 16;
  c.sequence = 1024;
  const graph g = training_graph(c);
  const program p = on_one_gpu(g, cuda::catalogue_target(number::bfloat16));
  const double GB = memory_bound_traffic(p, g) / 1e9;
  INFO(GB << " GB, " << computing(p) << " instructions");
  CHECK(GB <= 15);
  CHECK(GB >= 10);  // less would mean that something is not counted
  CHECK(computing(p) <= 250);
}

TEST_CASE("a step of twelve layers is at most 300 launches, and weights are updated by one of them") {
  transformer c = gpt2();
  c.width = 32;
  c.heads = 2;
  c.vocabulary = 128;
  c.positions = 16;
  c.batch = 2;
  c.sequence = 16;
  const graph g = training_graph(c);
  using device = streamed::rank_gpu<bf16, cuda::matrix_library>;
  cfp::emulated::put_into_stream = &stand_in::later;
  stand_in::reset();
  const device::parts shared;
  const program p = on_one_gpu(g, shared.lowered_for());
  long attention = 0, updates = 0;
  for (const instruction& i : p.code) {
    attention += i.fusion >= 0 && p.fusions[static_cast<std::size_t>(i.fusion)].label == "attention";
    updates += i.kind == instruction::compute && g.at(i.op).op->body == op_body::update;
  }
  CHECK(attention == 24);
  CHECK(updates == 1);
  run_ranks({1}, [&](rank_context& rank) {
    device on(shared, rank);
    engine<device> run(p, g, on, 3);
    seen.launches = 0;
    run.step(1, 1);
    INFO(seen.launches << " launches by " << computing(p) << " instructions");
    CHECK(seen.launches > computing(p));
    CHECK(seen.launches <= 300);
    CHECK(on.refused_epilogues() == 0);
  });
  CHECK(seen.misuses == 0);
}

TEST_CASE("one product added to another is one instruction with it, a product added to itself is not") {
  for (const bool itself : {false, true}) {
    model net;
    const tensor x = net.input("x", {{"batch", 8}, {"in", 16}}, element::real, {0, 1});
    const tensor y = linear(x, net.weight("w", {{"in", 16}, {"out", 8}}, {0, 1}));
    add(y, itself ? y : linear(x, net.weight("v", {{"in", 16}, {"out", 8}}, {0, 1})));
    const program p = on_one_gpu(refine(net.recorded), cuda::catalogue_target(number::bfloat16));
    CHECK(p.fusions.size() == (itself ? 0 : 1));
  }
}

}  // namespace bound_cases
