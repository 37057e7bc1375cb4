// Experts from a public configuration: trained under a plan in bfloat16, saved, and gone on with on another mesh.
#include <cfp/cfp.hpp>
#include <cfp/families/families.hpp>

#include <iostream>

namespace families = cfp::families;

int main(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "moe CONFIGURATION [TEXT]: a configuration of mixtral or gshard (tests/tiny_mixtral.json)\n";
    return 2;
  }
  try {
    const long batch = 4, sequence = 16;
    families::model_sizes sizes;
    sizes.batch = batch;
    sizes.sequence = sequence;
    sizes.pad_to = 128;
    const families::built_model net = families::build_model(families::config_file(argv[1]), sizes);
    std::string text = "An expert is someone who has made all the mistakes which can be made in a narrow field. ";
    for (int i = 0; i < 5; ++i) text += text;
    const families::byte_text batches(text, batch, sequence, 1, net.inputs);

    cfp::session first(net.forward, {.mesh = "data=2", .type = cfp::number::bfloat16});
    std::cout << first.overview() << first.plan() << first.verify(batches, 5) << first.train(batches, 10);
    first.save_state("moe.safetensors");

    cfp::session second(net.forward, {.mesh = "data=2,expert=2", .type = cfp::number::bfloat16, .lazy = true});
    second.load_state("moe.safetensors");
    std::cout << second.plan() << second.train(batches, 10);
  } catch (const std::exception& e) {
    std::cerr << e.what() << '\n';
    return 2;
  }
}
