// Everything that reads a text or a file, under libFuzzer: any input ends in a value or in a sentence; what was read,
// written and read again is equal. CFP_FUZZ names the reader. With CFP_FUZZ_SEEDS=FOLDER nothing is read: what our own
// writers write is put there, to start from.
#include "readers.hpp"

#include <cstdlib>
#include <iostream>
#include <typeinfo>

using namespace cfp;
using namespace fuzz;

namespace {

struct reader {
  std::string_view name;
  void (*read)(const std::string& input);
};
constexpr reader readers[] = {{"rule", &read_rule_text},   {"dimensions", &read_dims}, {"placement", &read_placements},
                              {"mesh", &read_mesh_text},   {"config", &read_config},   {"model", &read_model},
                              {"machine", &read_machines}, {"plan", &read_plans},      {"table", &read_table},
                              {"costs", &read_cost_graph}, {"state", &read_state}};

// Only our own kinds of errors say sentences; of the rest nobody knows what they say.
void check_sentence(const std::exception& e, const std::string& input) {
  must(dynamic_cast<const bad_input*>(&e) || dynamic_cast<const invalid_machine*>(&e) ||
           dynamic_cast<const invalid_cost_graph*>(&e) || dynamic_cast<const limit_reached*>(&e) ||
           dynamic_cast<const error*>(&e),
       std::string("an error of the readers, not ") + typeid(e).name() + ": " + e.what());
  check_words(e.what(), input);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const reader& chosen = [] {
    const char* const name = std::getenv("CFP_FUZZ");
    for (const reader& r : readers)
      if (name != nullptr && r.name == name) return r;
    std::cerr << "CFP_FUZZ must be one of";
    for (const reader& r : readers) std::cerr << ' ' << r.name;
    std::cerr << '\n';
    std::exit(2);
  }();
  const std::string input(reinterpret_cast<const char*>(data), size);
  try {
    chosen.read(input);
  } catch (const std::exception& e) {
    check_sentence(e, input);
  }
  return 0;
}

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  if (const char* const folder = std::getenv("CFP_FUZZ_SEEDS")) {
    write_seeds(folder);
    std::exit(0);
  }
  return 0;
}
