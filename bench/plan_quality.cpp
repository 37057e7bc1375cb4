// Plans for machines that are described: the found one beside those people use and Alpa's, all priced by one evaluator
// (an event simulation of the lowered program, collectives beside operators). Simulated, not measured.
#include "carried.hpp"
#include "report.hpp"

#include <cfp/families/families.hpp>
#include <cfp/file/new_file.hpp>
#include <cfp/model/differentiate.hpp>
#include <cfp/model/refine.hpp>
#include <cfp/plan/ladder.hpp>
#include <cfp/plan/mesh_search.hpp>
#include <cfp/profile/machine/machine_file.hpp>

#include <CLI/CLI.hpp>

#include <unistd.h>

using namespace cfp;
using json = nlohmann::ordered_json;

namespace {

json plan_json(const std::string& label, const evaluated& e, double seconds) {
  return {{"name", label},
          {"step_ms", e.when.ms},
          {"peak_bytes", e.peak},
          {"fits", e.fits},
          {"search_seconds", seconds},
          {"operators_ms", e.when.operators},
          {"collectives_ms", e.when.collectives},
          {"exposed_ms", e.when.exposed}};
}

void print(const std::string& label, const evaluated& e, double found, double seconds) {
  std::printf("  %-30s %9.1f ms  %6.3f   %8.2f GiB%s %9.1f %9.1f %7.1f\n", label.c_str(), e.when.ms, e.when.ms / found,
              static_cast<double>(e.peak) / (1 << 30), e.fits ? "  " : " !", e.when.operators, e.when.exposed, seconds);
}

/// What became of one mesh. Prints its plans.
struct seen_on_mesh {
  bool re_ranked = false, usual_first = false;
  json entry;

  seen_on_mesh(const mesh_plans& on, double limit) {
    const priced_plans& plans = on.plans;
    const evaluated* found = plans.found();
    if (found == nullptr) {
      std::printf("\nmesh %s: nothing fits %.1f GiB, the leanest plan needs about %.1f GiB\n",
                  sizes_text(on.mesh).c_str(), limit / (1 << 30), static_cast<double>(plans.least) / (1 << 30));
      entry = {{"least_bytes", plans.least}, {"plans", json::array()}};
      return;
    }
    usual_first = found != priced_plans::fastest(plans.candidates);
    re_ranked = plans.candidates.empty() || found != &plans.candidates.front();
    double seconds = 0;
    for (const evaluated& e : plans.candidates) seconds += e.seconds;
    std::printf("\n  %-30s %12s  %6s   %12s   %9s %9s %7s\n", ("mesh " + sizes_text(on.mesh)).c_str(), "step", "/found",
                "peak", "operators", "exposed", "search s");
    print(usual_first ? "found: " + found->p.name : "found", *found, found->when.ms, seconds);
    entry = {{"re_ranked", re_ranked}, {"plans", {plan_json("found", *found, seconds)}}};
    for (const std::vector<evaluated>* some : {&plans.usual, &plans.alpa}) {
      std::vector<const evaluated*> sorted;
      for (const evaluated& e : *some) sorted.push_back(&e);
      std::sort(sorted.begin(), sorted.end(), [](const evaluated* x, const evaluated* y) {
        return x->fits != y->fits ? x->fits : x->when.ms < y->when.ms;
      });
      for (const evaluated* e : sorted) {
        print(e->p.name, *e, found->when.ms, e->seconds);
        entry["plans"].push_back(plan_json(e->p.name, *e, e->seconds));
      }
    }
  }
};

/// The fastest that fits on any mesh, or nothing.
std::optional<double> best_of(const std::vector<mesh_plans>& all, std::vector<evaluated> priced_plans::*which) {
  std::optional<double> best;
  for (const mesh_plans& on : all)
    if (const evaluated* e = priced_plans::fastest(on.plans.*which); e != nullptr && (!best || e->when.ms < *best))
      best = e->when.ms;
  return best;
}

std::string ratio_text(const std::optional<double>& of, double found) {
  char out[16];
  std::snprintf(out, sizeof out, "%.3f", of ? *of / found : 0.0);
  return of ? out : "none fits";
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Plans for described machines beside those people use, all simulated alike", "plan_quality");
  std::vector<std::string> models{"alpa-gpt-1.3b", "alpa-gpt-2.6b", "alpa-gpt-6.7b", "llama-2-7b",
                                  "llama-3-8b",    "alpa-moe-2.4b", "alpa-moe-7.1b", "mixtral-8x7b"};
  std::vector<std::string> machines{"a100-pcie-4", "v100-8", "a100-8", "h200-8", "v100-2x8-25g", "h100-8x8-400g"};
  std::string to;
  long per_device = 4, sequence = 1024;
  int micro_batches = 1, axes = 2;
  bool steps = true, no_overlap = false;
  machine_options options;
  app.add_option("--json", to, "write the figures here");
  app.add_option("--model", models, "of examples/models, or files")->delimiter(',');
  app.add_option("--machine", machines, "of examples/machines, or files")->delimiter(',');
  app.add_option("--batch-per-device", per_device, "sequences a step has for each device")->capture_default_str();
  app.add_option("--seq", sequence, "tokens of a sequence")->capture_default_str();
  app.add_option("--micro-batches", micro_batches,
                 "pieces a step's batch comes in; twice as many, down to a sequence per device, where nothing fits")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  app.add_option("--axes", axes, "most axes of a mesh; three are solved two at a time")
      ->check(CLI::Range(1, 3))
      ->capture_default_str();
  app.add_option("--gap", options.gap, "how far a sum of parts may be above the least, relative to it")
      ->capture_default_str();
  app.add_option("--memory", options.memory, "bytes of a device (0: what the machine says)");
  app.add_option("--seconds", options.solve_seconds, "of work, 1e9 additions each, that one solution may take at most")
      ->capture_default_str();
  app.add_flag("--no-overlap", no_overlap, "collectives do not run beside operators");
  app.add_flag("!--no-ladder", steps, "do not say where the gain over Alpa's plan comes from");
  try {
    app.parse(argc, argv);
    options.overlap = !no_overlap;
    options.recompute = recomputing::none;  // what that brings is measured by `memory`
    json out{{"cases", json::array()}};
    std::string table;
    int cases = 0, nothing_fits = 0, re_ranked = 0, usual_first = 0;
    std::vector<double> over_usual, over_alpa;
    for (const std::string& model : models)
      for (const std::string& name : machines) {
        const machine m = load_machine(carried_machine(name));
        const auto shown = [&](const std::string& what) {
          if (isatty(2)) std::fprintf(stderr, "\r\033[K%s", what.c_str());
        };
        families::model_sizes sizes;
        sizes.batch = per_device * m.devices();
        sizes.sequence = sequence;
        if (sizes.batch % micro_batches != 0)
          throw bad_input("a batch of " + std::to_string(sizes.batch) + " cannot be cut into " +
                          std::to_string(micro_batches) + " micro-batches of whole sequences");
        sizes.least_groups = m.devices();
        std::optional<graph> g;
        std::vector<mesh_plans> all;
        int pieces = micro_batches;
        for (;; pieces *= 2) {  // as many as it takes for something to fit
          training how;
          how.clip = 1;
          how.micro_batches = pieces;
          families::model_sizes piece = sizes;
          piece.batch /= pieces;
          g = differentiate(refine(build_model(families::config_file(carried_model(model)), piece).forward), how);
          all = search_meshes(*g, m, options, meshes_of(m, axes), [&](const mesh_shape& mesh) {
            shown(model + " on " + name + ", mesh " + sizes_text(mesh));
          });
          if (all.front().plans.found() != nullptr || per_device % (2 * pieces) != 0) break;
        }
        shown("");
        const double limit = static_cast<double>(options.memory > 0 ? options.memory : m.device.memory);
        std::printf("\n%s on %s: batch %ld of %ld, %d micro-batches, limit %.1f GiB\n", model.c_str(), m.name.c_str(),
                    sizes.batch, sizes.sequence, pieces, limit / (1 << 30));
        for (const mesh_plans& on : all) {
          const seen_on_mesh seen(on, limit);
          ++cases;
          nothing_fits += on.plans.found() == nullptr;
          re_ranked += seen.re_ranked;
          usual_first += seen.usual_first;
          json entry{{"model", model},         {"machine", name},      {"mesh", sizes_text(on.mesh)},
                     {"memory_limit", limit},  {"batch", sizes.batch}, {"sequence", sizes.sequence},
                     {"micro_batches", pieces}};
          entry.update(seen.entry);
          out["cases"].push_back(entry);
        }
        char line[200];
        if (const evaluated* found = all.front().plans.found(); found == nullptr) {
          std::snprintf(line, sizeof line, "%-15s %-14s %2d nothing fits\n", model.c_str(), name.c_str(), pieces);
        } else {
          const std::optional<double> usual = best_of(all, &priced_plans::usual),
                                      alpa = best_of(all, &priced_plans::alpa);
          if (usual) over_usual.push_back(*usual / found->when.ms);
          if (alpa) over_alpa.push_back(*alpa / found->when.ms);
          std::snprintf(line, sizeof line, "%-15s %-14s %2d %-6s %9.1f ms %7.1f GiB %9s %9s", model.c_str(),
                        name.c_str(), pieces, sizes_text(all.front().mesh).c_str(), found->when.ms,
                        static_cast<double>(found->peak) / (1 << 30), ratio_text(usual, found->when.ms).c_str(),
                        ratio_text(alpa, found->when.ms).c_str());
          table += line;
          if (steps && all.front().mesh.rank() < 3) {  // of three axes one is held
            machine_search search(*g, all.front().mesh, all.front().decisions, m, options);
            for (const evaluated& e : ladder(search, *g, all.front().mesh, all.front().decisions, m, options)) {
              std::snprintf(line, sizeof line, " %8.3f%s", e.when.ms / found->when.ms, e.fits ? " " : "!");
              table += line;
              out["cases"][out["cases"].size() - all.size()]["ladder"].push_back(plan_json(e.p.name, e, e.seconds));
            }
          }
          std::snprintf(line, sizeof line, "\n");
        }
        table += line;
        std::fflush(stdout);
        if (!to.empty()) write_file(to, out.dump(1));
      }
    std::printf(
        "\nThe fastest mesh of each, with as many micro-batches (mb) as it takes; time of the best usual plan, and of "
        "Alpa's, on any mesh that fits, over the found plan's. Then, on that mesh, Alpa's\n"
        "strategies by what is counted, one thing after the other: bytes, latency, bandwidth of small messages, "
        "operators (! does not fit).\n"
        "%-15s %-14s mb %-6s %12s %11s %9s %9s %8s  %8s  %8s  %8s\n%s",
        "model", "machine", "mesh", "step", "peak", "usual", "Alpa's", "bytes", "latency", "small", "operators",
        table.c_str());
    const auto most = [](const std::vector<double>& x) {
      return x.empty() ? 0 : *std::max_element(x.begin(), x.end());
    };
    std::printf(
        "%d meshes, on %d nothing fits; simulated speed-up over the best usual plan median %.3f, at most %.3f; over "
        "Alpa's median %.3f, at most %.3f\n",
        cases, nothing_fits, median(over_usual), most(over_usual), median(over_alpa), most(over_alpa));
    std::printf("the evaluator chose another plan than sums of parts on %d meshes, a usual one or Alpa's on %d\n",
                re_ranked, usual_first);
  } catch (...) {
    return report<CLI::ParseError>(app);
  }
}
