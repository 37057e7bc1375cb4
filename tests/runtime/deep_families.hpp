// Model families of any depth.
#pragma once

#include "../from_environment.hpp"

#include <cfp/families/decoder.hpp>
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

inline transformer sized(long layers, bool folded = false) {
  transformer c = read_decoder(carried("gpt2"));
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
  return refine(decoder(shallow(read_decoder(tiny("llama")), layers, folded)));
}
inline graph mixtral_of_layers(long layers, bool folded = false) {
  return refine(decoder(shallow(read_decoder(tiny("mixtral")), layers, folded)));
}
inline graph gshard_of_layers(long layers, bool folded = false) {
  return refine(decoder(shallow(read_decoder(tiny("gshard")), layers, folded)));
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
    {"gpt", [](long n, bool folded) { return refine(decoder(sized(n, folded))); }, 1, 4, 3, 7},
    {"llama", llama_of_layers, 1, 4, 3, 7},
    {"mixtral", mixtral_of_layers, 1, 10, 4, 14},
    {"gshard", gshard_of_layers, 2, 14, 4, 16},
    {"t5", t5_of_layers, 1, 10, 5, 12}};

/// How many of them to look at.
constexpr std::size_t few_if_slow(std::size_t few) { return sanitized ? few : std::size(known_families); }

}  // namespace deep_families
