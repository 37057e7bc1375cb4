// A small LLaMA (rotary embedding, grouped heads, SwiGLU), compared with the plans people use.
#include <cfp/cfp.hpp>
#include <iostream>

using cfp::model, cfp::tensor, cfp::size_of;

constexpr long batch = 4, sequence = 32, width = 64, heads = 4, kv_heads = 2, layers = 2, vocabulary = 256;
constexpr double scale = 0.25, turns = 9.210340371976184;  // 1 / sqrt(width / heads), log(10000)
const cfp::dimension embedding{"embedding", width}, hidden{"hidden", 192}, keys{"heads", kv_heads*(width / heads)};

tensor norm(model& net, tensor x, const std::string& name) {
  return cfp::rms_norm(x, cfp::rms_square(x), net.weight(name, {embedding}, {1.0}), 1.0 / width, 1e-5);
}

tensor attention(model& net, tensor x, const std::string& layer) {
  const auto project = [&](const char* name, cfp::dimension out) {
    return cfp::dense(x, net.weight(layer + name + ".weight", {out, embedding}, {0, 0.02}));
  };
  const auto turned = [](tensor t) {
    return cfp::rotary(t, turns, 2.0 * heads / width, size_of{"half", 2}, size_of{"out", 2});
  };
  const size_of h{"heads", kv_heads};
  const tensor q = turned(cfp::split_groups(project(".q", {"heads", width}), h, size_of{"group", heads / kv_heads}));
  const tensor k = turned(cfp::split_heads(project(".k", keys), h)), v = cfp::split_heads(project(".v", keys), h);
  const tensor score = cfp::grouped_scores(q, k);
  const tensor max = cfp::masked_max(score, scale, cfp::causal), sum = cfp::masked_sum(score, max, scale, cfp::causal);
  const tensor mixed = cfp::grouped_sum(cfp::masked_softmax(score, max, sum, scale, cfp::causal), v);
  return cfp::dense(cfp::merge_groups(mixed),
                    net.weight(layer + ".o.weight", {embedding, {"heads", width}}, {0, 0.02}));
}

tensor mlp(model& net, tensor x, const std::string& layer) {
  const tensor gate = cfp::dense(x, net.weight(layer + ".gate.weight", {hidden, embedding}, {0, 0.02}));
  const tensor up = cfp::dense(x, net.weight(layer + ".up.weight", {hidden, embedding}, {0, 0.02}));
  return cfp::dense(cfp::gated_silu(gate, up), net.weight(layer + ".down.weight", {embedding, hidden}, {0, 0.02}));
}

cfp::graph llama() {
  model net;
  const cfp::dimension rows{"batch", batch}, columns{"sequence", sequence}, words{"vocabulary", vocabulary};
  const tensor tokens = net.input("tokens", {rows, columns}, cfp::element::index, {0, 0, vocabulary});
  const tensor targets = net.input("targets", {rows, columns}, cfp::element::index, {0, 0, vocabulary});
  tensor x = cfp::lookup(net.weight("embed.weight", {words, embedding}, {0, 0.02}), tokens);
  for (long l = 0; l < layers; ++l) {
    const std::string layer = "layers." + std::to_string(l);
    x = cfp::add(x, attention(net, norm(net, x, layer + ".norm_1"), layer));
    x = cfp::add(x, mlp(net, norm(net, x, layer + ".norm_2"), layer));
  }
  const tensor logits = cfp::dense(norm(net, x, "norm"), net.weight("head.weight", {words, embedding}, {0, 0.02}));
  const tensor max = cfp::logits_max(logits), sum = cfp::logits_sum(logits, max);
  net.recorded.loss = cfp::cross_entropy(logits, targets, max, sum, 1.0 / (batch * sequence)).id;
  return net.recorded;
}

int main() {
  cfp::session s(llama(), {.mesh = "data=2,model=2"});
  const char* const corpus = "Pack my box with five dozen liquor jugs; how vexingly quick daft zebras jump!";
  const cfp::families::byte_text text(corpus, batch, sequence, 1, {.positions = false});
  std::cout << s.plan() << s.verify(text, 5) << s.compare(text, 5);
}
