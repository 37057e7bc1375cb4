// Model families of any depth.
#pragma once

#include <cfp/families/read_config.hpp>
#include <cfp/model/differentiate.hpp>

namespace deep_families {

using namespace cfp;
using namespace cfp::families;

// A public model.
inline config_file carried(const std::string& model) {
  return config_file(std::string(CFP_SOURCE_DIR) + "/examples/models/" + model + ".json");
}

inline gpt_config sized(long layers) {
  gpt_config c = read_gpt(carried("gpt2"));
  c.layers = layers;
  return c;
}

inline config_file tiny(const std::string& model) {
  return config_file(std::string(CFP_SOURCE_DIR) + "/tests/tiny_" + model + ".json");
}

template <class Config>
Config shallow(Config c, long layers) {
  c.layers = layers;
  c.sequence = 16;
  return c;
}
inline graph llama_of_layers(long layers) { return refine(llama(shallow(read_llama(tiny("llama")), layers))); }
inline graph mixtral_of_layers(long layers) {
  const config_file file = tiny("mixtral");
  return refine(mixtral(shallow(read_llama(file), layers), read_experts(file)));
}
inline graph gshard_of_layers(long layers) {
  const config_file file = tiny("gshard");
  return refine(gshard(shallow(read_gpt(file), layers), read_experts(file)));
}
inline graph t5_of_layers(long layers) { return refine(t5(shallow(read_t5(tiny("t5")), layers))); }

struct family {
  const char* name;
  graph (*forward)(long layers);
  long period;          // layers until they repeat
  long blocks, others;  // blocks of a period, and of what stands around the layers
  int unique_blocks;
};
inline const family known_families[] = {{"gpt", [](long n) { return refine(gpt(sized(n))); }, 1, 4, 3, 7},
                                        {"llama", llama_of_layers, 1, 4, 3, 7},
                                        {"mixtral", mixtral_of_layers, 1, 10, 4, 14},
                                        {"gshard", gshard_of_layers, 2, 14, 4, 16},
                                        {"t5", t5_of_layers, 1, 10, 5, 12}};

}  // namespace deep_families
