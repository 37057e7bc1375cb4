// Plans within a limit of memory: what computing again for backward brings. On described machines with nothing, what
// the search chooses, all computed again, and moments of 8 bits; beside published figures; and on CPU ranks, measured.
#include "carried.hpp"
#include "report.hpp"

#include <cfp/backend/cuda/fusions.hpp>
#include <cfp/backend/threads.hpp>
#include <cfp/families/byte_text.hpp>
#include <cfp/families/families.hpp>
#include <cfp/file/json_reader.hpp>
#include <cfp/file/new_file.hpp>
#include <cfp/file/whole_file.hpp>
#include <cfp/model/differentiate.hpp>
#include <cfp/model/refine.hpp>
#include <cfp/plan/mesh_search.hpp>
#include <cfp/plan/narrowed.hpp>
#include <cfp/plan/search.hpp>
#include <cfp/profile/machine/machine_file.hpp>
#include <cfp/profile/summary.hpp>
#include <cfp/session/race.hpp>

#include <CLI/CLI.hpp>

#include <unistd.h>

using namespace cfp;
using json = nlohmann::ordered_json;

namespace {

constexpr double gib = 1 << 30;

struct memory_case {
  std::string model, machine;
  long batch = 0;  ///< sequences of a step
  long sequence = 1024;
  int micro_batches = 1, nodes = 0;  ///< nodes: that the machine has in place of its own
};

void tell(const std::string& what) {
  if (isatty(2)) std::fprintf(stderr, "\r\033[K%s", what.c_str());
}

graph trained(const memory_case& c, int devices, optimizer_form optimizer = optimizer_form::adamw_float32) {
  families::model_sizes sizes;
  sizes.batch = c.batch / c.micro_batches;
  sizes.sequence = c.sequence;
  sizes.least_groups = devices;
  training how;
  how.clip = 1;
  how.optimizer = optimizer;
  how.micro_batches = c.micro_batches;
  return differentiate(refine(build_model(families::config_file(carried_model(c.model)), sizes).forward), how);
}

machine machine_of(const memory_case& c) {
  machine m = load_machine(carried_machine(c.machine));
  if (c.nodes > 0) m.levels.back().joins = c.nodes;
  return m;
}

struct searched {
  std::vector<mesh_plans> all;
  double seconds = 0;
  const evaluated* best() const { return all.front().plans.found(); }
  json ms() const { return best() != nullptr ? json(best()->when.ms) : json(); }
};

searched search(const graph& g, const machine& m, recomputing again) {
  machine_options o;
  o.lowered_for = cuda::catalogue_target(number::bfloat16);
  o.recompute = again;
  const auto begin = std::chrono::steady_clock::now();
  searched out{search_meshes(g, m, o, meshes_of(m)), 0};
  out.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return out;
}

std::string text_of(const evaluated* e) {
  char out[40];
  if (e == nullptr) return "nothing fits";
  std::snprintf(out, sizeof out, "%.1f ms", e->when.ms);
  return out;
}

std::string gib_of(const evaluated* e) {
  char out[40];
  if (e == nullptr) return "-";
  std::snprintf(out, sizeof out, "%.1f GiB", static_cast<double>(e->peak) / gib);
  return out;
}

json described(const memory_case& c) {
  const machine m = machine_of(c);
  tell(c.model + " on " + c.machine);
  const graph g = trained(c, m.devices());
  const searched kept = search(g, m, recomputing::none), chosen = search(g, m, recomputing::where_needed),
                 all = search(g, m, recomputing::all),
                 lean = search(trained(c, m.devices(), optimizer_form::adamw_8bit), m, recomputing::where_needed);
  tell("");
  const evaluated* const found = chosen.best();
  std::printf("%-15s %-15s %6ld x %-5ld %5d  %14s %14s %14s %14s  %10s %6.1f s\n", c.model.c_str(), c.machine.c_str(),
              c.batch, c.sequence, m.devices(), text_of(kept.best()).c_str(), text_of(found).c_str(),
              text_of(all.best()).c_str(), text_of(lean.best()).c_str(), gib_of(found).c_str(), chosen.seconds);
  std::fflush(stdout);
  return {{"model", c.model},
          {"machine", c.machine},
          {"devices", m.devices()},
          {"batch", c.batch},
          {"sequence", c.sequence},
          {"fits_before", kept.best() != nullptr},
          {"fits", found != nullptr},
          {"step_ms", chosen.ms()},
          {"kept_only_ms", kept.ms()},
          {"full_recompute_ms", all.ms()},
          {"adamw_8bit_ms", lean.ms()},
          {"peak_bytes", found != nullptr ? json(found->peak) : json()},
          {"mesh", found != nullptr ? json(sizes_text(chosen.all.front().mesh)) : json()},
          {"seconds", chosen.seconds},
          {"gap", found != nullptr ? json(found->gap) : json()}};
}

/// Rows of published throughput that have no pipeline: our price of the layout they ran, and what we find.
json published(const json& row) {
  const auto number_of = [&](const char* key, long otherwise) {
    return row.contains(key) ? row[key].get<long>() : otherwise;
  };
  const long gpus = number_of("gpus", 8), local = number_of("local_batch", 0), context = number_of("cp", 1),
             tensor = number_of("tp", 1), batch = local > 0 ? local * gpus : number_of("gbs", 0);
  const bool sharded = number_of("fsdp", 0) > 0;
  const long copies = gpus / (context * tensor), micro = local > 0 ? local : number_of("mbs", 1);
  memory_case c{row["model"], gpus > 8 ? "h100-8x8-400g" : "h100-8", batch, number_of("seq", 8192),
                static_cast<int>(batch / (micro * copies))};
  machine m = machine_of(c);
  if (row.contains("memory_gib")) {  // 96 GB at 2.4 TB/s
    m.device.memory = 96l << 30;
    m.device.bandwidth *= 2.4 / 3.35;
  } else {
    m.device.weight_products = "float8";  // NVIDIA's
  }
  tell("published: " + c.model);
  const graph g = trained(c, m.devices());
  mesh_shape mesh;
  mesh.axes.push({name("data"), static_cast<int>(copies)});
  if (context > 1) mesh.axes.push({name("sequence"), static_cast<int>(context)});
  if (tensor > 1) mesh.axes.push({name("model"), static_cast<int>(tensor)});
  const std::string outer = sharded ? "zero3" : "zero1";
  const std::string wanted = context > 1 ? outer + "+context" : tensor > 1 ? outer + "+tensor_sequence" : outer;
  machine_options o;
  o.lowered_for = cuda::catalogue_target(number::bfloat16);
  const mesh_plans on = search_meshes(g, m, o, {mesh}).front();
  const evaluated* theirs = nullptr;
  for (const evaluated& e : on.plans.usual)
    if (e.p.name == wanted || e.p.name == wanted + ", cheap recomputed" || e.p.name == wanted + ", all recomputed")
      if (theirs == nullptr || (!theirs->fits && e.fits)) theirs = &e;
  const searched ours = search(g, m, recomputing::where_needed);
  tell("");
  const double tokens = static_cast<double>(c.batch * c.sequence) / static_cast<double>(gpus);
  const auto per_second = [&](const evaluated* e) { return e != nullptr ? 1000 * tokens / e->when.ms : 0; };
  const double said = row["tokens_s_gpu"];
  std::printf("%-12s %4ld GPUs, %-28s published %7.0f, predicted %7.0f (%.3f), %5.1f GiB; found %7.0f\n",
              c.model.c_str(), gpus, theirs != nullptr ? theirs->p.name.c_str() : wanted.c_str(), said,
              per_second(theirs), per_second(theirs) / said,
              theirs != nullptr ? static_cast<double>(theirs->peak) / gib : 0.0, per_second(ours.best()));
  std::fflush(stdout);
  json out = row;
  out["plan"] = theirs != nullptr ? theirs->p.name : wanted;
  out["predicted_tokens_s_gpu"] = per_second(theirs);
  out["predicted_memory_gib"] = theirs != nullptr ? json(static_cast<double>(theirs->peak) / gib) : json();
  out["found_tokens_s_gpu"] = per_second(ours.best());
  return out;
}

std::vector<json> published_rows(const std::string& path) {
  const std::optional<std::string> text = cfp::detail::whole_file(path);
  if (!text) throw bad_input("published figures " + path + ": cannot be read");
  const json all = json::parse(*text);
  std::vector<json> out;
  const auto take = [&](const json& rows) {
    for (const json& r : rows)
      if (!r.contains("pp") || r["pp"].get<int>() == 1) out.push_back(r);
  };
  take(all["rows"]);
  if (all.contains("torchtitan")) take(all["torchtitan"]["rows"]);
  return out;
}

/// GPT-2 of eight layers on two CPU ranks under limits: measured steps of the found plans, and of the free plan with
/// what is cheap, or all, computed again. Those are known to the search within a limit: it takes one that fits and is
/// predicted to be faster than what it found.
json on_ranks(const families::model_sizes& sizes, int steps) {
  const families::built_model net = build_model(families::config_file(carried_model("gpt2")), sizes);
  const graph g = differentiate(refine(net.forward));
  mesh_shape mesh;
  mesh.axes.push({name("data"), 2});
  const std::unique_ptr<backend> ranks = threads(mesh, number::float32);
  const block_structure blocks = parallel_blocks(g);
  const segmentation found_segments = segments(g, blocks);
  const recomputation again(g, blocks, found_segments, find_saved(g, ranks->lowered_for()));
  const decision_graph d = decisions(g, blocks, mesh, axis_choice::regathered, {}, &again);
  const segment_times whole(blocks, found_segments, d);
  profile_table table;
  profiler measure_with(g, d, *ranks, table);
  measure_with.tell = [](int done, int, const std::string& what) { tell(std::to_string(done) + ": " + what); };
  measure_with.be_lazy(0.02);
  plan_search search(g, mesh, d, whole, measure_with);
  search.tolerance = 0.02;
  const plan fastest = search.run({}).front();
  for (const auto& [called, least] :
       {std::pair("cheap recomputed", keeping::costly), std::pair("all recomputed", keeping::nothing)})
    search.add(called, recomputed_to(least, fastest.choices, d));
  search.rounds = 0;  // what was run whole is known to the next search
  std::vector<plan> plans = search.run({});
  std::vector<double> shares{1, 0, 0};
  const auto peak = static_cast<double>(predicted_peak(plans.front()));
  for (const double share : {0.9, 0.8, 0.7, 0.6, 0.5}) {
    search_options limits;
    limits.memory_limit = std::lround(share * peak);
    search.rounds = 0;
    try {
      plans.push_back(search.run(limits).front());
      shares.push_back(share);
    } catch (const nothing_fits& e) {
      tell("");
      std::printf("limit %4.0f%%  %s\n", 100 * share, e.what());
    }
  }
  std::vector<rank_programs> programs;
  for (const plan& p : plans) programs.push_back(p.on_ranks());
  const families::byte_text text(std::string(1 << 16, 'a'), sizes.batch, sizes.sequence, 1, net.inputs);
  const std::vector<observed> seen = race(*ranks, programs, g, text, {steps, 1, {}});
  tell("");
  json out = json::array();
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const double ms = median(seen[i].ms);
    std::printf("limit %4.0f%%  %-16s %8.1f ms measured, %8.1f predicted, %8.1f MiB (%.1f measured)\n", 100 * shares[i],
                plans[i].name.c_str(), ms, plans[i].predicted_ms,
                static_cast<double>(predicted_peak(plans[i])) / (1 << 20),
                static_cast<double>(seen[i].peak_bytes) / (1 << 20));
    out.push_back({{"limit_share", shares[i]},
                   {"plan", plans[i].name},
                   {"measured_ms", ms},
                   {"predicted_ms", plans[i].predicted_ms},
                   {"predicted_bytes", predicted_peak(plans[i])},
                   {"measured_bytes", seen[i].peak_bytes}});
  }
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Plans within a limit of memory, with what is computed again for backward", "memory");
  std::vector<std::string> models{"alpa-gpt-1.3b", "alpa-gpt-2.6b", "alpa-gpt-6.7b", "llama-2-7b",
                                  "llama-3-8b",    "alpa-moe-2.4b", "alpa-moe-7.1b", "mixtral-8x7b"};
  std::vector<std::string> machines{"a100-pcie-4", "v100-8", "a100-8", "h200-8", "v100-2x8-25g", "h100-8x8-400g"};
  std::string to, figures;
  bool large = true, ranks = true;
  long per_device = 4, sequence = 1024;
  int steps = 10;
  families::model_sizes of_ranks{8, 256, 8};
  app.add_option("--json", to, "write the figures here");
  app.add_option("--model", models, "of examples/models, or files")->delimiter(',');
  app.add_option("--machine", machines, "of examples/machines, or files")->delimiter(',');
  app.add_option("--batch-per-device", per_device, "sequences a step has for each device")->capture_default_str();
  app.add_option("--seq", sequence, "tokens of a sequence")->capture_default_str();
  app.add_option("--published", figures, "rows of published throughput, a file");
  app.add_option("--steps", steps, "of each plan on CPU ranks, in turn")->capture_default_str();
  app.add_option("--ranks-batch", of_ranks.batch, "sequences of a step on CPU ranks")->capture_default_str();
  app.add_option("--ranks-seq", of_ranks.sequence, "tokens of each")->capture_default_str();
  app.add_flag("!--no-large", large, "leave out llama-3-70b on 64 GPUs and llama-3.1-405b on 1,024");
  app.add_flag("!--no-ranks", ranks, "leave out what is measured on CPU ranks");
  try {
    app.parse(argc, argv);
    std::vector<memory_case> cases;
    for (const std::string& model : models)
      for (const std::string& name : machines)
        cases.push_back({model, name, per_device * load_machine(carried_machine(name)).devices(), sequence});
    if (large) {
      cases.push_back({"llama-3-70b", "h100-8x8-400g", 64, 4096});
      cases.push_back({"llama-3-405b", "h100-8x8-400g", 1024, 4096, 1, 128});
    }
    json out{{"cases", json::array()}, {"published", json::array()}, {"on_ranks", json::array()}};
    const auto keep = [&] {
      if (!to.empty()) write_file(to, out.dump(1));
    };
    std::printf("%-15s %-15s %6s   %-5s %7s  %14s %14s %14s %14s  %10s %8s\n", "model", "machine", "batch", "seq",
                "devices", "all kept", "chosen", "all again", "8-bit moments", "peak", "search");
    for (const memory_case& c : cases) out["cases"].push_back(described(c)), keep();
    if (!figures.empty())
      for (const json& row : published_rows(figures)) out["published"].push_back(published(row)), keep();
    if (ranks) out["on_ranks"] = on_ranks(of_ranks, steps), keep();
  } catch (...) {
    return report<CLI::ParseError>(app);
  }
}
