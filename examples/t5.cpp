// A plan for a machine that is not here: T5 on every mesh of a described machine, nothing run.
#include <cfp/cfp.hpp>
#include <cfp/families/families.hpp>

#include <iostream>

int main(int argc, char** argv) {
  if (argc < 3) {
    std::cerr << "t5 CONFIGURATION MACHINE: for example examples/models/t5-large.json examples/machines/a100-8.json\n";
    return 2;
  }
  try {
    const cfp::machine machine = cfp::load_machine(argv[2]);
    cfp::families::model_sizes sizes;
    sizes.batch = 4l * machine.devices();
    sizes.sequence = 512;
    const cfp::families::config_file file(argv[1]);
    const cfp::machine_plan found = cfp::plan_for(cfp::families::build_model(file, sizes).forward, machine);
    std::cout << found;
    if (!found.fits()) return 1;
    found.save_plan("t5_plan.json");
  } catch (const std::exception& e) {
    std::cerr << e.what() << '\n';
    return 2;
  }
}
