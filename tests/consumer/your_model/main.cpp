// The mixer planned, verified, trained and compared.
#include "mixer.hpp"

#include <fstream>
#include <iostream>

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
