// Model families of any depth.
#pragma once

#include "../from_environment.hpp"

#include <cfp/families/read_config.hpp>
#include <cfp/model/differentiate.hpp>

#include <cstddef>
#include <iterator>
#include <string>

namespace deep_families {

using namespace cfp;
using namespace cfp::families;

// A public model.
inline config_file carried(const std::string& model) {
  return config_file(std::string(CFP_SOURCE_DIR) + "/examples/models/" + model + ".json");
}

inline gpt_config sized(long layers, bool folded = false) {
  gpt_config c = read_gpt(carried("gpt2"));
  c.layers = layers;
  c.folded = folded;
  return c;
}

inline config_file tiny(const std::string& model) {
  return config_file(std::string(CFP_SOURCE_DIR) + "/tests/tiny_" + model + ".json");
}

template <class Config>
Config shallow(Config c, long layers, bool folded = false) {
  c.layers = layers;
  c.folded = folded;
  c.sequence = 16;
  return c;
}
inline graph llama_of_layers(long layers, bool folded = false) {
  return refine(llama(shallow(read_llama(tiny("llama")), layers, folded)));
}
inline graph mixtral_of_layers(long layers, bool folded = false) {
  const config_file file = tiny("mixtral");
  return refine(mixtral(shallow(read_llama(file), layers, folded), read_experts(file)));
}
inline graph gshard_of_layers(long layers, bool folded = false) {
  const config_file file = tiny("gshard");
  return refine(gshard(shallow(read_gpt(file), layers, folded), read_experts(file)));
}
inline graph t5_of_layers(long layers, bool folded = false) {
  return refine(t5(shallow(read_t5(tiny("t5")), layers, folded)));
}

struct family {
  const char* name;
  graph (*of_layers)(long layers, bool folded);
  long period;          // layers until they repeat
  long blocks, others;  // blocks of a period, and of what stands around the layers
  int unique_blocks;

  graph forward(long layers, bool folded = false) const { return of_layers(layers, folded); }
};
inline const family known_families[] = {
    {"gpt", [](long n, bool folded) { return refine(gpt(sized(n, folded))); }, 1, 4, 3, 7},
    {"llama", llama_of_layers, 1, 4, 3, 7},
    {"mixtral", mixtral_of_layers, 1, 10, 4, 14},
    {"gshard", gshard_of_layers, 2, 14, 4, 16},
    {"t5", t5_of_layers, 1, 10, 5, 12}};

/// How many of them to look at.
constexpr std::size_t few_if_slow(std::size_t few) { return sanitized ? few : std::size(known_families); }

}  // namespace deep_families
