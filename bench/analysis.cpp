// How long it takes to trace, differentiate, block and segment the training graphs of public models, and how large the
// search is per operator, per block and per unique segment. Prints a table (or JSON, with --json FILE).
#include "carried.hpp"
#include "report.hpp"

#include <cfp/block/decisions.hpp>
#include <cfp/block/segments.hpp>
#include <cfp/families/families.hpp>
#include <cfp/file/new_file.hpp>
#include <cfp/model/differentiate.hpp>
#include <cfp/model/refine.hpp>

#include <chrono>
#include <cstdio>
#include <cstring>

using namespace cfp;

namespace {

struct row {
  std::string name;
  int operators = 0;
  std::size_t blocks = 0, unique_blocks = 0, segments = 0;
  int unique_segments = 0;
  std::size_t strategies = 0;                               // of unique parts, on one axis of four devices
  double per_operator = 0, per_block = 0, per_segment = 0;  // log10 of plans
  double seconds = 0, per_layer = 0;                        // seconds of one layer more
};

graph model_of(const std::string& name, long layers) {
  const families::config_file file(carried_model(name));
  families::model_sizes sizes;
  sizes.layers = layers;
  if (name.starts_with("t5")) sizes.sequence = 512;
  return build_model(file, sizes).forward;
}

struct structure {
  graph g;
  block_structure blocks;
  segmentation parts;
};
structure analysed(const std::string& name, long layers, double& seconds) {
  const auto begin = std::chrono::steady_clock::now();
  structure s;
  s.g = differentiate(refine(model_of(name, layers)));
  s.blocks = parallel_blocks(s.g);
  s.parts = segments(s.g, s.blocks);
  seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return s;
}

row analyse(const std::string& name) {
  row r;
  r.name = name;
  const structure s = analysed(name, 0, r.seconds);
  double twelve = 0, thirty_six = 0, again = 0;
  for (int round = 0; round < 3; ++round) {  // the least of three
    double seconds = 0;
    analysed(name, 0, seconds);
    r.seconds = std::min(r.seconds, seconds);
    analysed(name, 12, again);
    twelve = round == 0 ? again : std::min(twelve, again);
    analysed(name, 36, again);
    thirty_six = round == 0 ? again : std::min(thirty_six, again);
  }
  r.per_layer = (thirty_six - twelve) / 24;
  r.operators = s.g.size();
  r.blocks = s.blocks.blocks.size();
  r.unique_blocks = static_cast<std::size_t>(s.parts.unique_blocks);
  r.segments = s.parts.segments.size();
  r.unique_segments = s.parts.unique;
  mesh_shape mesh;
  mesh.axes.push({"axis", 4});
  const decision_graph d = decisions(s.g, s.blocks, mesh);
  std::set<std::string> unique;
  std::map<int, double> of_part;
  for (const decision& n : d.nodes) {
    if (n.kind != decision::strategy_of_part) continue;
    of_part[n.index] = std::log10(static_cast<double>(n.choices()));
    r.per_block += of_part[n.index];
    if (unique.insert(fingerprint(s.g, n.operations)).second) {
      r.strategies += n.choices();
      r.per_segment += of_part[n.index];
    }
  }
  for (const operation& o : s.g.operations) {
    if (o.when != phase::forward) continue;
    int choices = 1;
    for (int f = 0; f < o.r.factors.size(); ++f) choices += !o.r.stays_together(f) && o.sizes[f] % 4 == 0;
    r.per_operator += std::log10(static_cast<double>(choices));
  }
  return r;
}

}  // namespace

int main(int argc, char** argv) try {
  const char* json = argc == 3 && std::strcmp(argv[1], "--json") == 0 ? argv[2] : nullptr;
  if (argc > 1 && json == nullptr) return std::fprintf(stderr, "analysis: takes --json FILE\n"), 2;
  nlohmann::ordered_json out;
  out["models"] = nlohmann::ordered_json::array();
  std::printf(
      "| model | operators | blocks (unique) | segments (unique) | strategies | plans per operator | per block | per "
      "unique part | seconds | ms per layer more |\n"
      "|---|---|---|---|---|---|---|---|---|---|\n");
  for (const char* name : {"gpt2", "gpt2-xl", "alpa-gpt-6.7b", "llama-2-7b", "llama-3-8b", "llama-3-70b",
                           "mixtral-8x7b", "alpa-moe-7.1b", "alpa-moe-70b", "t5-large"}) {
    const row r = analyse(name);
    std::printf("| %s | %d | %zu (%zu) | %zu (%d) | %zu | 10^%.0f | 10^%.0f | 10^%.0f | %.3f | %.2f |\n",
                r.name.c_str(), r.operators, r.blocks, r.unique_blocks, r.segments, r.unique_segments, r.strategies,
                r.per_operator, r.per_block, r.per_segment, r.seconds, 1000 * r.per_layer);
    std::fflush(stdout);
    out["models"].push_back({{"name", r.name},
                             {"operators", r.operators},
                             {"blocks", r.blocks},
                             {"unique_blocks", r.unique_blocks},
                             {"segments", r.segments},
                             {"unique_segments", r.unique_segments},
                             {"strategies", r.strategies},
                             {"log10_per_operator", r.per_operator},
                             {"log10_per_block", r.per_block},
                             {"log10_per_unique_part", r.per_segment},
                             {"seconds", r.seconds},
                             {"seconds_per_layer", r.per_layer}});
  }
  if (json != nullptr) write_file(json, out.dump(1));
} catch (...) {
  return report();
}
