// What stages on meshes of different sizes would gain: Alpa's formula over cuts and submeshes, its least where all
// stages have as many devices, and where each has any, on the same tables.
#include "carried.hpp"
#include "report.hpp"

#include <cfp/backend/cuda/fusions.hpp>
#include <cfp/families/families.hpp>
#include <cfp/file/new_file.hpp>
#include <cfp/model/differentiate.hpp>
#include <cfp/model/refine.hpp>
#include <cfp/plan/mesh_search.hpp>
#include <cfp/plan/narrowed.hpp>
#include <cfp/plan/stages/priced_stages.hpp>
#include <cfp/plan/stages/run_costs.hpp>
#include <cfp/plan/stages/stage_borders.hpp>
#include <cfp/plan/stages/stage_tables.hpp>
#include <cfp/profile/machine/machine_file.hpp>
#include <cfp/solve/other/alpa_stages.hpp>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace cfp;
using json = nlohmann::ordered_json;

constexpr auto kind = staged_schedule::one_forward_one_backward;

// A model in micro-batches, whose stages lie on parts of a machine.
struct staged_model {
  staged_model(graph made, const machine& on) : g(std::move(made)), planned(g, target_of()), m(on) {}
  static target target_of() { return cuda::catalogue_target(number::bfloat16); }

  const graph g;
  const detail::planned_graph planned;
  const machine& m;
  const stage_segments segments_of{g, segments(g, planned.blocks), planned.again};
};

// What runs of segments take on one mesh.
class mesh_tables {
 public:
  mesh_tables(const staged_model& of, const mesh_shape& inside)
      : inside_(inside), inner_(innermost(of.m, inside.devices())), conversions_(inner_, inside),
        options_(plain().on(of.m.device.memory, conversions_.prices)), times_(inner_, inside, nullptr),
        kept_(of.g, of.segments_of, decided(of, false), priced(of, decided(of, false))) {
    const decision_graph all = decided(of, true);
    const fewer_choices some = however_kept(all, *kept_.left());
    const decision_graph fewer = narrowed(all, some);
    less_.emplace(of.g, of.segments_of, fewer, priced(of, fewer), false, some);
    stage_tables::limits limits{of.g.passes, of.m.device.memory, options_.of_solver(), options_.of_solver(0.005)};
    limits.within.gap = 0.01;
    tables_.emplace(
        kept_, [this] { return &*less_; }, limits);
  }
  mesh_tables(const mesh_tables&) = delete;

  int segments() const { return tables_->segments(); }
  void add(int first, int end, int most, std::vector<stage_option>& to) {
    for (stage_option o : tables_->options(first, end, 1, most)) {
      o.devices = inside_.devices();
      to.push_back(o);
    }
  }

 private:
  static machine_options plain() {
    machine_options o;
    o.lowered_for = staged_model::target_of();
    return o;
  }
  decision_graph decided(const staged_model& of, bool may_recompute) const {
    return detail::decided(of.planned, inside_, options_, {}, may_recompute);
  }
  stage_costs priced(const staged_model& of, const decision_graph& d) {
    const placed_pools places(of.m, inside_, std::max(2, of.m.devices() / inside_.devices()));
    return detail::priced_stages(of.planned, of.segments_of, d, places, times_, options_.lowered_for,
                                 &conversions_.known);
  }

  const mesh_shape inside_;
  const machine inner_;
  described_conversions conversions_;
  const machine_options options_;
  described_times times_;
  const run_costs kept_;
  std::optional<run_costs> less_;
  std::optional<stage_tables> tables_;
};

struct found {
  double ms = std::numeric_limits<double>::infinity();
  std::string devices = "nothing fits";
};

// The least of the formula where stages have so many devices each; 0: any.
found least(const staged_model& of, std::deque<mesh_tables>& tables, int devices) {
  const int most = std::min(of.m.devices(), of.g.passes);
  const mesh_shape quarter = meshes_of(innermost(of.m, std::max(1, of.m.devices() / 4)), 1).front();
  const placed_pools quarters(of.m, quarter, 4);
  const detail::stage_borders borders(of.g, of.segments_of, quarters, sizeof(std::uint16_t));
  std::map<std::pair<int, int>, std::vector<stage_option>> known;
  stage_problem p;
  p.layers = tables.front().segments(), p.micro_batches = of.g.passes;
  p.memory = static_cast<double>(of.m.device.memory);
  p.border = [&](int, int at) { return borders(1, at); };
  p.options = [&](int, int first, int end) -> const std::vector<stage_option>& {
    const auto [at, fresh] = known.try_emplace({first, end});
    if (fresh)
      for (mesh_tables& t : tables) t.add(first, end, most, at->second);
    if (fresh && devices > 0) std::erase_if(at->second, [&](const stage_option& o) { return o.devices != devices; });
    return at->second;
  };
  const stage_solution s = alpa_stages(p, kind, node_cluster{1, of.m.devices()});
  found out;
  if (!s.feasible()) return out;
  out.ms = alpa_time(p, s.ends, s.option);
  out.devices.clear();
  for (const stage_option& o : s.option) out.devices += (out.devices.empty() ? "" : "+") + std::to_string(o.devices);
  return out;
}

json compared(const std::string& model, long layers, long rows, long sequence, const machine& m, int micro_batches) {
  families::model_sizes sizes;
  sizes.layers = layers, sizes.batch = rows / micro_batches, sizes.sequence = sequence;
  training how;
  how.micro_batches = micro_batches;
  const families::config_file config(carried_model(model));
  const staged_model of(differentiate(refine(build_model(config, sizes).forward), how), m);
  std::deque<mesh_tables> tables;
  for (int devices = 1; devices <= m.devices(); devices *= 2)
    for (const mesh_shape& inside : meshes_of(innermost(m, devices), 2)) tables.emplace_back(of, inside);
  found equal;
  for (int devices = 1; devices <= m.devices(); devices *= 2)
    if (const found f = least(of, tables, devices); f.ms < equal.ms) equal = f;
  const found any = least(of, tables, 0);
  const double gain = 1 - any.ms / equal.ms;
  std::printf("%-12s %6ld %13d %10.2f  %-12s %10.2f  %-16s %6.2f%%\n", model.c_str(), layers, micro_batches, equal.ms,
              equal.devices.c_str(), any.ms, any.devices.c_str(), 100 * gain);
  std::fflush(stdout);
  return {{"model", model},
          {"layers", layers},
          {"micro_batches", micro_batches},
          {"equal_ms", equal.ms},
          {"equal", equal.devices},
          {"any_ms", any.ms},
          {"any", any.devices},
          {"gain", gain}};
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Stages on unequal meshes, by Alpa's formula", "unequal_stages");
  std::string to, on = "h100-8", model;
  long layers = 4;
  app.add_option("--json", to, "file for the figures");
  app.add_option("--machine", on, "a machine of examples/machines, of one node")->capture_default_str();
  app.add_option("--model", model, "one of examples/models; none: three");
  app.add_option("--layers", layers, "of it")->check(CLI::PositiveNumber)->capture_default_str();
  try {
    app.parse(argc, argv);
    const machine m = load_machine(carried_machine(on));
    std::printf("on %s\n%-12s %6s %13s %10s  %-12s %10s  %-16s %7s\n", m.name.c_str(), "model", "layers",
                "micro-batches", "equal, ms", "devices", "any, ms", "devices", "gain");
    const std::vector<std::string> some = model.empty() ? std::vector<std::string>{"gpt2", "llama-3-8b", "mixtral-8x7b"}
                                                        : std::vector<std::string>{model};
    json rows = json::array();
    for (const std::string& one : some)
      for (const int micro_batches : {4, 8, 16}) rows.push_back(compared(one, layers, 64, 1024, m, micro_batches));
    if (!to.empty()) write_file(to, json{{"machine", on}, {"rows", rows}}.dump(1) + "\n");
  } catch (...) {
    return report<CLI::ParseError>(app);
  }
}
