// Small models, meshes, texts and trainings that the tests of whole trainings share.
#pragma once

#include <cfp/backend/threads.hpp>
#include <cfp/families/byte_text.hpp>
#include <cfp/families/families.hpp>
#include <cfp/plan/realise.hpp>
#include <cfp/session/verification.hpp>

#include <random>
#include <set>
#include <vector>

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

/// "gpt": tests/tiny_gpt.json
inline cfp::families::config_file tiny(const std::string& name) {
  return cfp::families::config_file(std::string(CFP_SOURCE_DIR) + "/tests/tiny_" + name + ".json");
}

inline cfp::families::transformer tiny_config() {
  cfp::families::transformer c = cfp::families::read_decoder(tiny("gpt"));
  c.vocabulary =
      512;  // weights so large that scores vary as in a wide model; else queries' gradients are rounding noise
  c.batch = 4;
  c.sequence = 8;
  return c;
}

/// The inputs of an encoder-decoder.
inline cfp::families::text_layout t5_layout(const cfp::families::t5_config& c) {
  return {
      {{"tokens", 0}, {"decoder_tokens", c.sequence}, {"targets", c.sequence + 1}},
      {{"distances", cfp::families::t5_buckets(c, true)}, {"decoder_distances", cfp::families::t5_buckets(c, false)}}};
}

/// A text for a model of four rows of eight tokens a step.
inline cfp::families::byte_text text_for(const cfp::graph& g, cfp::families::text_layout what = {}) {
  what.positions = g.find("positions") >= 0;
  return cfp::families::byte_text(some_text(), 4 / g.passes, 8, 5, what);
}

/// Where stages but the first begin: anywhere.
inline std::vector<int> random_cuts(const cfp::graph& g, int stages, std::mt19937& random) {
  int forward = 0;
  while (forward < g.size() && g.at(forward).when == cfp::phase::forward) ++forward;
  std::set<int> out;
  while (static_cast<int>(out.size()) < stages - 1)
    out.insert(1 + static_cast<int>(random() % static_cast<unsigned>(forward - 1)));
  return {out.begin(), out.end()};
}

/// The program of one rank.
inline cfp::program single(const cfp::graph& g, long real_bytes) {
  cfp::program p = cfp::lower(g, mesh_of({1}), cfp::sharding::replicated(g), cfp::all_operations(g), real_bytes);
  cfp::plan_memory(p);
  return p;
}

/// A plan of random choices.
inline cfp::plan random_plan(const cfp::graph& g, const cfp::mesh_shape& mesh, const cfp::decision_graph& d,
                             std::mt19937& random, long real_bytes, const cfp::schedule& order = {}) {
  return cfp::realise("random", g, mesh, d, cfp::random_choices(d, random), real_bytes, order);
}

/// Threads for a program, by its mesh and what it stores numbers as.
inline std::unique_ptr<cfp::backend> ranks_for(const cfp::program& p, const cfp::own_kernels& own = {}) {
  using cfp::number;
  return cfp::threads(p.mesh,
                      p.real_bytes == 8   ? number::float64
                      : p.real_bytes == 4 ? number::float32
                                          : number::bfloat16,
                      own);
}

/// Trains from the beginning, and remembers what became of the weights.
inline cfp::trained train_on(const cfp::program& p, const cfp::graph& g, const cfp::batch_source& data, long steps,
                             std::uint64_t seed, const cfp::own_kernels& own = {}) {
  cfp::train_options remember;
  remember.keep_changes = true;
  return cfp::train(*ranks_for(p, own), p, g, data, steps, seed, remember);
}

/// Whether training changed every weight.
inline bool all_changed(const cfp::trained& t) {
  return t.change.size() == t.weights.size() &&
         std::all_of(t.change.begin(), t.change.end(), [](const std::vector<double>& x) {
           return std::any_of(x.begin(), x.end(), [](double y) { return y != 0; });
         });
}

/// Runs a step on a loaded program.
inline void one_step(cfp::loaded_program& on, const cfp::program& p, cfp::shared_batches& data, long number) {
  on.step(number, p.passes, [&](int pass) { data.feed(on, number * p.passes + pass); });
}

/// A whole tensor, collected from all ranks.
inline std::vector<double> whole(cfp::rank& r, const cfp::loaded_program& on, const cfp::graph& g, int value) {
  std::vector<double> out(static_cast<std::size_t>(cfp::elements(g[value].shape)));
  on.collect(value, std::span(out));
  r.combine(out, cfp::reduction::sum);  // of the ranks that hold a piece one has written it
  return out;
}

}  // namespace small_tests
