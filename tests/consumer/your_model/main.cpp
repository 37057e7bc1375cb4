// An MLP-Mixer (arXiv 2105.01601) that tells images apart: planned, verified, trained and compared.
#include <cfp/backend/host/kernels_of.hpp>
#include <cfp/cfp.hpp>

#include <fstream>
#include <iostream>

using cfp::model, cfp::tensor, cfp::dimension;

constexpr long batch = 16, patches = 16, pixels = 48, width = 64, classes = 10, layers = 4;
const dimension embedding{"embedding", width}, hidden{"hidden", 4 * width};

// A matrix product along the patches: an operator is an object whose type is its rule.
inline constexpr cfp::op<"batch patch width, patch mixed -> batch mixed width"> mix;
// Two patches lists with different names of one size: the same elements under the name of the other.
inline constexpr cfp::op<"batch mixed width, mixed patch -> batch patch width"> unmix;
// The mean over the patches is a sum and a scale.
inline constexpr cfp::op<"batch patch width -> batch width"> sum_patches;

// Not in the catalogue: a rule and a functor. Its gradient follows from the functor.
inline constexpr struct squared_relu_t : cfp::op<"... -> ...", squared_relu_t> {
  template <class T>
  CFP_HOST_DEVICE static T apply(T x) {
    return x > T(0) ? x * x : T(0);
  }
} squared_relu;

tensor norm(model& net, tensor x, const std::string& name) {
  return cfp::rms_norm(x, cfp::rms_square(x), net.weight(name, {embedding}, {1.0}), 1.0 / width, 1e-5);
}

tensor layer(model& net, tensor x, const std::string& name) {
  const dimension all{"patch", patches}, more{"mixed", 2 * patches};
  const tensor along = mix(norm(net, x, name + ".norm_1"), net.weight(name + ".mix", {all, more}, {0, 0.1}));
  x = cfp::add(x, unmix(squared_relu(along), net.weight(name + ".unmix", {more, all}, {0, 0.1})));
  const tensor up =
      cfp::linear(norm(net, x, name + ".norm_2"), net.weight(name + ".up", {embedding, hidden}, {0, 0.1}));
  return cfp::add(x, cfp::linear(cfp::gelu(up), net.weight(name + ".down", {hidden, embedding}, {0, 0.05})));
}

cfp::graph mixer() {
  model net;
  const dimension rows{"batch", batch}, of_image{"patch", patches}, pixel{"pixel", pixels};
  const tensor images = net.input("images", {rows, of_image, pixel}, cfp::element::real, {});
  const tensor labels = net.input("labels", {rows}, cfp::element::index, {0, 0, classes});
  tensor x = cfp::linear(images, net.weight("embed", {pixel, embedding}, {0, 0.1}));
  for (long l = 0; l < layers; ++l) x = layer(net, x, "layers." + std::to_string(l));
  const tensor mean = cfp::scaled(sum_patches(norm(net, x, "norm")), 1.0 / patches);
  const tensor logits = cfp::linear(mean, net.weight("head", {embedding, {"classes", classes}}, {0, 0.1}));
  const tensor max = cfp::logits_max(logits), sum = cfp::logits_sum(logits, max);
  net.recorded.loss = cfp::cross_entropy(logits, labels, max, sum, 1.0 / batch).id;
  return net.recorded;
}

// The data of a pass, by its number: the same number gives the same data. Here: brighter images have larger labels.
cfp::batch images_and_labels(long number) {
  std::vector<float> images;
  std::vector<std::int32_t> labels;
  for (long i = 0; i < batch; ++i) {
    const auto label = static_cast<std::int32_t>((number * 7 + i * 3) % classes);
    labels.push_back(label);
    for (long p = 0; p < patches * pixels; ++p)
      images.push_back(static_cast<float>(label) / classes + 0.1f * static_cast<float>((p * 31 + i) % 17) / 17.0f);
  }
  return {{"images", std::move(images)}, {"labels", std::move(labels)}};
}

int main(int argc, char** argv) {
  try {
    if (argc > 1) std::cout << cfp::plan_for(mixer(), cfp::load_machine(argv[1]));
    cfp::session s(mixer(), {.mesh = "data=2", .kernels = cfp::kernels_of<squared_relu_t>(), .name = "mixer"});
    std::cout << s.overview() << s.plan();
    const cfp::verification proof = s.verify(images_and_labels, 10);
    std::cout << proof;
    if (!proof.holds()) return 1;
    std::cout << s.compare(images_and_labels, 10) << s.train(images_and_labels, 100);
    s.save_plan("mixer_plan.json");
    s.save_header("mixer_plan.hpp");
    s.save_state("mixer.safetensors");
    std::ofstream("mixer_summary.json") << proof.json();
  } catch (const std::exception& e) {
    std::cerr << e.what() << '\n';
    return 2;
  }
}
