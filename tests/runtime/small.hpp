// Small models, meshes and texts that the tests of whole trainings share.
#pragma once

#include "driver.hpp"
#include "read_config.hpp"

namespace small_tests {

inline cfp::mesh_shape mesh_of(std::initializer_list<int> sizes) {
  static constexpr const char* names[] = {"data", "model", "third"};
  cfp::mesh_shape m;
  for (int s : sizes) m.axes.push({cfp::name(names[m.rank()]), s});
  return m;
}

inline std::string some_text() {
  std::string s;
  for (int i = 0; i < 4000; ++i) s += static_cast<char>('a' + (i * i + i / 7) % 23);
  return s;
}

inline gpt_config tiny_config() {
  gpt_config c = read_gpt(config_file(std::string(CFP_SOURCE_DIR) + "/tests/tiny_gpt.json"));
  c.vocabulary = 512;  // weights so large that scores vary as in a wide model; else queries' gradients are rounding noise
  c.batch = 4;
  c.sequence = 8;
  return c;
}

/// The program of one rank.
inline cfp::program single(const cfp::graph& g, long real_bytes) {
  cfp::program p = cfp::lower(g, mesh_of({1}), cfp::sharding::replicated(g), cfp::all_operations(g), real_bytes);
  cfp::plan_memory(p);
  return p;
}

/// A plan of random choices.
inline cfp::plan random_plan(const cfp::graph& g, const cfp::mesh_shape& mesh, const cfp::decision_graph& d, std::mt19937& random, long real_bytes, const cfp::schedule& order = {}) {
  std::vector<int> choices;
  for (const cfp::decision& n : d.nodes) choices.push_back(static_cast<int>(random() % n.choices()));
  return cfp::realise("random", g, mesh, d, choices, real_bytes, order);
}

}  // namespace small_tests
