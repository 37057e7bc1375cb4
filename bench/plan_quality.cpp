// Plans for machines that are described: the found one beside those people use and Alpa's, all priced by one evaluator (an event
// simulation of the lowered program, collectives beside operators). Simulated, not measured.
#include "read_config.hpp"

#include <cfp/model/differentiate.hpp>
#include <cfp/model/refine.hpp>
#include <cfp/plan/mesh_search.hpp>
#include <cfp/profile/machine_file.hpp>

#include <CLI/CLI.hpp>

#include <unistd.h>

using namespace cfp;
using json = nlohmann::ordered_json;

namespace {

struct tally {
  int cases = 0, nothing_fits = 0, re_ranked = 0, usual_first = 0;
  std::vector<double> over_usual, over_alpa;
};

const evaluated* fastest(const std::vector<evaluated>& plans) {
  const evaluated* best = nullptr;
  for (const evaluated& e : plans)
    if (e.fits && (best == nullptr || e.when.ms < best->when.ms)) best = &e;
  return best;
}

json plan_json(const evaluated& e, double baseline_ms) {
  json out{{"name", e.p.name}, {"step_ms", e.when.ms}, {"peak_bytes", e.peak}, {"fits", e.fits}, {"search_seconds", e.seconds}};
  out["operators_ms"] = e.when.operators;
  out["collectives_ms"] = e.when.collectives;
  out["exposed_ms"] = e.when.exposed;
  if (baseline_ms > 0) out["time_over_found"] = e.when.ms / baseline_ms;
  return out;
}

void print(const evaluated& e, double found) {
  std::printf("  %-30s %9.1f ms  %6.3f   %8.2f GiB%s %9.1f %9.1f %7.1f\n", e.p.name.c_str(), e.when.ms, e.when.ms / found, static_cast<double>(e.peak) / (1 << 30), e.fits ? "  " : " !", e.when.operators,
              e.when.exposed, e.seconds);
}

// One model on one mesh of a machine.
json run(const std::string& model, const std::string& machine_name, const machine& m, const mesh_shape& mesh, const model_sizes& sizes, int micro_batches, const machine_options& options,
         bool steps, tally& all) {
  training how;
  how.clip = 1;
  how.micro_batches = micro_batches;
  model_sizes piece = sizes;
  piece.batch /= micro_batches;
  const config_file file(model);
  const graph g = differentiate(refine(read_model(file, piece)), how);
  const bool experts = file.has("num_experts") || file.has("num_local_experts");
  const decision_graph d = decisions(g, parallel_blocks(g), mesh, axis_choice::regathered);
  machine_search search(g, mesh, d, m, options);

  std::vector<evaluated> usual, alpa;
  for (const named_plan& p : usual_plans(mesh, experts))
    if (auto e = search.usual(p)) usual.push_back(std::move(*e));
  for (const bool limited : {false, true})
    if (limited == false || alpa.empty() || !alpa[0].fits)
      if (auto e = search.alpa(limited)) alpa.push_back(std::move(*e));
  std::vector<evaluated> candidates = search.candidates();
  std::string shape;
  for (int a = 0; a < mesh.rank(); ++a) shape += (a ? "x" : "") + std::to_string(mesh.size(a));
  std::printf("\n%s on %s, mesh %s: batch %ld of %ld, %d micro-batches, limit %.1f GiB\n", model.c_str(), m.name.c_str(), shape.c_str(), sizes.batch, sizes.sequence, micro_batches,
              static_cast<double>(search.limit()) / (1 << 30));
  json entry{{"model", model}, {"machine", machine_name}, {"mesh", shape}, {"memory_limit", search.limit()}, {"batch", sizes.batch}, {"sequence", sizes.sequence}, {"micro_batches", micro_batches},
             {"plans", json::array()}};
  ++all.cases;
  const evaluated *best_usual = fastest(usual), *best_alpa = fastest(alpa), *found = fastest(candidates);
  if (found == nullptr && best_usual == nullptr && best_alpa == nullptr) {
    ++all.nothing_fits;
    std::printf("  nothing fits: the leanest plan needs about %.1f GiB\n", static_cast<double>(search.least) / (1 << 30));
    entry["least_bytes"] = search.least;
  }
  // Sums of parts chose the first candidate; the evaluator chooses among all.
  double seconds = 0;
  for (const evaluated& e : candidates) seconds += e.seconds;
  const bool other = found != nullptr && found != &candidates.front();
  for (const evaluated* e : {best_usual, best_alpa})
    if (e != nullptr && (found == nullptr || e->when.ms < found->when.ms)) found = e;
  const bool by_usual = found != nullptr && (found == best_usual || found == best_alpa);
  all.re_ranked += other || by_usual;
  all.usual_first += by_usual;
  entry["re_ranked"] = other || by_usual;
  if (found != nullptr) {
    evaluated winner = *found;
    winner.p.name = "found";
    winner.seconds = seconds;
    std::printf("  %-30s %12s  %6s   %12s   %9s %9s %7s\n", "plan", "step", "/found", "peak", "operators", "exposed", "search s");
    print(winner, winner.when.ms);
    entry["plans"].push_back(plan_json(winner, winner.when.ms));
    if (by_usual) std::printf("  (that is %s)\n", found->p.name.c_str());
    for (std::vector<evaluated>* plans : {&usual, &alpa}) {
      std::sort(plans->begin(), plans->end(), [](const evaluated& a, const evaluated& b) { return a.fits != b.fits ? a.fits : a.when.ms < b.when.ms; });
      for (const evaluated& e : *plans) {
        print(e, winner.when.ms);
        entry["plans"].push_back(plan_json(e, winner.when.ms));
      }
    }
    if (best_usual != nullptr) all.over_usual.push_back(usual[0].when.ms / winner.when.ms);
    if (best_alpa != nullptr) all.over_alpa.push_back(alpa[0].when.ms / winner.when.ms);
    if (steps) {
      std::printf("  Alpa's strategies, by what is counted besides bytes:");
      entry["ladder"] = json::array();
      for (const evaluated& e : search.ladder()) {
        std::printf(" %s %.3f%s", e.p.name.c_str(), e.when.ms / winner.when.ms, e.fits ? ";" : " (too large);");
        entry["ladder"].push_back(plan_json(e, winner.when.ms));
      }
      std::printf(" all strategies 1\n");
    }
  }
  std::fflush(stdout);
  return entry;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Plans for described machines beside those people use, all simulated alike", "plan_quality");
  std::vector<std::string> models{"alpa-gpt-1.3b", "alpa-gpt-2.6b", "alpa-gpt-6.7b", "llama-2-7b", "llama-3-8b", "alpa-moe-2.4b", "alpa-moe-7.1b", "mixtral-8x7b"};
  std::vector<std::string> machines{"a100-pcie-4", "v100-8", "a100-8", "h200-8", "v100-2x8-25g", "h100-8x8-400g"};
  std::string to;
  long per_device = 4, sequence = 1024;
  int micro_batches = 1;
  bool steps = true, no_overlap = false;
  machine_options options;
  app.add_option("--json", to, "write the figures here");
  app.add_option("--model", models, "of examples/models")->delimiter(',');
  app.add_option("--machine", machines, "of examples/machines")->delimiter(',');
  app.add_option("--batch-per-device", per_device, "sequences a step has for each device")->capture_default_str();
  app.add_option("--seq", sequence, "tokens of a sequence")->capture_default_str();
  app.add_option("--micro-batches", micro_batches, "pieces a step's batch comes in")->check(CLI::Range(1, 100000))->capture_default_str();
  app.add_option("--memory", options.memory, "bytes of a device (0: what the machine says)");
  app.add_option("--seconds", options.solve_seconds, "most one solution may take")->capture_default_str();
  app.add_flag("--no-overlap", no_overlap, "collectives do not run beside operators");
  app.add_flag("!--no-ladder", steps, "do not say where the gain over Alpa's plan comes from");
  try {
    app.parse(argc, argv);
    options.overlap = !no_overlap;
    json out{{"cases", json::array()}};
    tally all;
    for (const std::string& model : models)
      for (const std::string& name : machines) {
        const machine m = load_machine(CFP_SOURCE_DIR "/examples/machines/" + name + ".json");
        for (const mesh_shape& mesh : meshes_of(m)) {
          if (isatty(2)) std::fprintf(stderr, "\r\033[K%s on %s", model.c_str(), name.c_str());
          model_sizes sizes;
          sizes.batch = per_device * m.devices();
          sizes.sequence = sequence;
          if (sizes.batch % micro_batches != 0) throw bad_input("a batch of " + std::to_string(sizes.batch) + " cannot be cut into " + std::to_string(micro_batches) + " micro-batches of whole sequences");
          sizes.least_groups = m.devices();
          out["cases"].push_back(run(model, name, m, mesh, sizes, micro_batches, options, steps, all));
          if (!to.empty()) std::ofstream(to) << out.dump(1) << '\n';
        }
      }
    std::printf("\n%d cases, in %d nothing fits; simulated speed-up of the found plan: over the best usual plan that fits median %.3f, at most %.3f; over Alpa's median %.3f, at most %.3f\n", all.cases,
                all.nothing_fits, median(all.over_usual), all.over_usual.empty() ? 0 : *std::max_element(all.over_usual.begin(), all.over_usual.end()), median(all.over_alpa),
                all.over_alpa.empty() ? 0 : *std::max_element(all.over_alpa.begin(), all.over_alpa.end()));
    std::printf("the evaluator chose another plan than sums of parts in %d, a usual one in %d\n", all.re_ranked, all.usual_first);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 2;
  } catch (const bad_input& e) {
    return std::fprintf(stderr, "%s\n", e.what()), 2;
  } catch (const std::invalid_argument& e) {
    return std::fprintf(stderr, "%s\n", e.what()), 2;
  } catch (const char* e) {
    return std::fprintf(stderr, "%s\n", e), 1;
  }
}
