// A small GPT, from its layers to a verified plan.
#include <cfp/cfp.hpp>

#include <iostream>

using cfp::model, cfp::tensor;

constexpr long batch = 4, sequence = 32, width = 64, heads = 4, layers = 2, vocabulary = 256;
const cfp::dimension embedding{"embedding", width}, hidden{"hidden", 4 * width};

tensor norm(model& net, tensor x, const std::string& name) {
  const double per = 1.0 / width;
  const tensor sum = cfp::norm_sum(x), square = cfp::norm_square(x, sum, per);
  return cfp::layer_norm(x, sum, square, net.weight(name + ".weight", {embedding}, {1.0}),
                         net.weight(name + ".bias", {embedding}, {0.0}), per, 1e-5);
}

tensor attention(model& net, tensor x, const std::string& layer) {
  const tensor all = cfp::linear(x, net.weight(layer + ".qkv.weight", {embedding, {"qkv", 3 * width}}, {0, 0.02}));
  const auto [q, k, v] = cfp::split_qkv(all, cfp::size_of{"three", 3}, cfp::size_of{"heads", heads});
  const tensor score = cfp::scores(q, k);
  const double scale = 0.25;  // 1 / sqrt(width / heads)
  const tensor max = cfp::masked_max(score, scale, cfp::causal), sum = cfp::masked_sum(score, max, scale, cfp::causal);
  const tensor mixed = cfp::weighted_sum(cfp::masked_softmax(score, max, sum, scale, cfp::causal), v);
  return cfp::linear(cfp::merge_heads(mixed),
                     net.weight(layer + ".proj.weight", {{"heads", width}, embedding}, {0, 0.02}));
}

tensor mlp(model& net, tensor x, const std::string& layer) {
  const tensor up = cfp::linear(x, net.weight(layer + ".up.weight", {embedding, hidden}, {0, 0.02}));
  return cfp::linear(cfp::gelu(up), net.weight(layer + ".down.weight", {hidden, embedding}, {0, 0.02}));
}

cfp::graph gpt() {
  model net;
  const cfp::dimension rows{"batch", batch}, columns{"sequence", sequence};
  const auto indices = [&](const char* name) {
    return net.input(name, {rows, columns}, cfp::element::index, {0, 0, vocabulary});
  };
  const tensor tokens = indices("tokens"), targets = indices("targets");
  const tensor table = net.weight("table.weight", {{"vocabulary", vocabulary}, embedding}, {0, 0.02});
  tensor x = cfp::lookup(table, tokens);
  for (long l = 0; l < layers; ++l) {
    const std::string layer = "h." + std::to_string(l);
    x = cfp::add(x, attention(net, norm(net, x, layer + ".ln_1"), layer));
    x = cfp::add(x, mlp(net, norm(net, x, layer + ".ln_2"), layer));
  }
  const tensor logits = cfp::dense(norm(net, x, "ln_f"), table), max = cfp::logits_max(logits);
  net.recorded.loss =
      cfp::cross_entropy(logits, targets, max, cfp::logits_sum(logits, max), 1.0 / (batch * sequence)).id;
  return net.recorded;
}

int main() {
  std::string corpus;
  for (int i = 0; i < 4000; ++i) corpus += static_cast<char>('a' + (i * i + i / 7) % 23);
  const cfp::families::byte_text text(corpus, batch, sequence, 1, {.positions = false});
  cfp::session s(gpt(), {.mesh = "data=2"});
  std::cout << s.overview() << s.plan() << s.verify(text, 5) << s.train(text, 50);
}
