// Schedules of a pipeline on CPU ranks of this machine, joined by a link that is slower than memory: what a simulation
// of their programs says, from times of instructions under another schedule, and what a step takes.
#include "carried.hpp"
#include "report.hpp"

#include <cfp/backend/cuda/fusions.hpp>
#include <cfp/backend/threads.hpp>
#include <cfp/block/repeats.hpp>
#include <cfp/communicator/threads/run_ranks.hpp>
#include <cfp/families/byte_text.hpp>
#include <cfp/families/families.hpp>
#include <cfp/file/json_reader.hpp>
#include <cfp/file/new_file.hpp>
#include <cfp/file/whole_file.hpp>
#include <cfp/model/differentiate.hpp>
#include <cfp/model/refine.hpp>
#include <cfp/pipeline/named_schedules.hpp>
#include <cfp/plan/mesh_plans.hpp>
#include <cfp/plan/stages/equal_ends.hpp>
#include <cfp/plan/stages/staged_price.hpp>
#include <cfp/plan/stages/staged_search.hpp>
#include <cfp/plan/stages/usual_stages.hpp>
#include <cfp/profile/instruction_kind.hpp>
#include <cfp/profile/machine/machine_file.hpp>
#include <cfp/profile/machine/stage_timeline.hpp>
#include <cfp/profile/summary.hpp>
#include <cfp/program/stages/lower_stages.hpp>
#include <cfp/session/shared_batches.hpp>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>

using namespace cfp;
using json = nlohmann::ordered_json;

namespace {

using kinds = std::map<std::pair<std::string, std::string>, std::vector<double>>;  // milliseconds, as often as they ran

// Stages of as many layers each.
std::vector<int> even_cuts(const graph& g, int stages) {
  const block_structure blocks = parallel_blocks(g);
  const repeats r(g, blocks);
  std::vector<int> out;
  for (const int end : equal_ends(segments(g, blocks), stages))
    if (end < static_cast<int>(r.operations.size())) out.push_back(r.operations[static_cast<std::size_t>(end)].front());
  return out;
}

struct timed {
  std::vector<double> ms;  // of steps, of the slowest rank
  kinds instructions;
};

class measured_schedule {
 public:
  measured_schedule(const graph& g, const pipeline_schedule& s, const std::vector<stage_cost>& costs)
      : schedule(s), programs(lower_stages(g, {}, sharding::replicated(g), {even_cuts(g, s.stages), s, costs},
                                           sizeof(float), {.overlap = true})) {}

  timed run(const std::vector<rank_link>& links, const batch_source& data, int steps) const {
    const auto on = linked_threads(programs.along[0].mesh, number::float32, links);
    shared_batches batches(programs.g, data);
    timed out;
    out.ms.resize(static_cast<std::size_t>(steps));
    std::mutex mutex;
    on->run([&](rank& r) {
      const program& p = programs.of(r.number());
      const auto mine = r.load(p, programs.g, 1);
      for (int step = 0; step <= steps; ++step) {  // the first is not counted
        r.barrier();
        const auto begin = std::chrono::steady_clock::now();
        mine->step(step + 1, p.passes, [&](int pass) { batches.feed(*mine, (step + 1) * p.passes + pass); });
        double ms = 1000 * std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
        r.combine(std::span(&ms, 1), reduction::max);
        if (step == 0) continue;
        const std::vector<double> seconds = mine->times().instructions;
        const std::lock_guard lock(mutex);
        out.ms[static_cast<std::size_t>(step - 1)] = ms;
        for (std::size_t i = 0; i < p.code.size(); ++i)
          if (!p.code[i].crosses()) out.instructions[kind(p.code[i], p)].push_back(1000 * seconds[i]);
      }
    });
    return out;
  }

  // What a step should take.
  stage_timeline predicted(const std::map<std::pair<std::string, std::string>, double>& known,
                           const rank_link& link) const {
    std::vector<std::vector<double>> ms;
    for (const program& p : programs.along) {
      ms.emplace_back();
      for (const instruction& i : p.code)
        ms.back().push_back(i.crosses() ? 1000 * link.seconds(p[i.crossed()].bytes) : known.at(kind(i, p)));
    }
    return simulate(programs.along, ms);
  }

  const pipeline_schedule schedule;
  const stage_programs programs;

 private:
  std::pair<std::string, std::string> kind(const instruction& i, const program& p) const {
    const instruction_kind k = kind_of(i, p, programs.g);
    return {k.kind, k.size};
  }
};

// Schedules predicted and measured.
json on_ranks(const std::string& model, const families::model_sizes& given, int micro_batches, int steps,
              const rank_link& link) {
  const families::built_model net = build_model(families::config_file(carried_model(model)), given);
  training how;
  how.micro_batches = micro_batches;
  const graph g = differentiate(refine(net.forward), how);
  const families::byte_text text(std::string(1 << 16, 'a'), given.batch, given.sequence, 1, net.inputs);
  // Without a link, under schedules of as many stages.
  std::map<std::pair<std::string, std::string>, double> known;
  for (const int chunks : {1, 2}) {
    const measured_schedule alone(g, interleaved(2, chunks, micro_batches), {});
    for (auto& [kind, ms] : alone.run({}, text, steps).instructions) known[kind] = median(ms);
  }
  std::printf("%s on 2 ranks, %d micro-batches of %ld x %ld, a link of %.3g GB/s and %.3g us\n\n", net.sizes.c_str(),
              micro_batches, given.batch, given.sequence, link.bandwidth / 1e9, 1e6 * link.latency);
  std::printf("%-14s %12s %12s %10s %10s\n", "schedule", "predicted", "measured", "off by", "idle");
  json out = json::array();
  for (const char* name : {"gpipe", "1f1b", "interleaved", "zb_h1", "chimera"}) {
    const measured_schedule m(g, schedule_named(name, {2, micro_batches, 2, {}}), {});
    const stage_timeline expected = m.predicted(known, link);
    const double ms = median(m.run({link}, text, steps).ms);
    std::printf("%-14s %9.1f ms %9.1f ms %9.1f%% %9.1f%%\n", name, expected.ms, ms, 100 * (expected.ms / ms - 1),
                100 * expected.idle());
    std::fflush(stdout);
    out.push_back({{"schedule", name}, {"predicted_ms", expected.ms}, {"measured_ms", ms}});
  }
  return out;
}

// A model by name, of so many rows in each pass.
graph training_graph(const std::string& model, long rows, long sequence, int micro_batches) {
  families::model_sizes sizes;
  sizes.batch = rows, sizes.sequence = sequence;
  training how;
  how.clip = 1;
  how.micro_batches = micro_batches;
  return differentiate(refine(build_model(families::config_file(carried_model(model)), sizes).forward), how);
}

// A step of so many micro-batches of a layout as Megatron has it: data x tensor inside of stages, interleaved.
struct recipe {
  std::string model;
  int data = 1, tensor = 1, places = 1, chunks = 1;
  long rows = 1, sequence = 1024;  // of a micro-batch, on each of the data-parallel ranks
};

staged_usual price_of(const recipe& r, const machine& m, int micro_batches) {
  mesh_shape inside;
  inside.axes.push({name("data"), r.data});
  if (r.tensor > 1) inside.axes.push({name("model"), r.tensor});
  machine_options options;
  options.lowered_for = cuda::catalogue_target(number::bfloat16);
  const auto in_passes = [&](int passes) { return training_graph(r.model, r.rows * r.data, r.sequence, passes); };
  usual_stages all(in_passes, {inside, r.places, r.chunks}, micro_batches, m, options);
  const std::string wanted = r.tensor > 1 ? "zero1+tensor_sequence" : "zero1";
  for (const named_plan& n : usual_inside(inside, false))
    if (n.name == wanted)
      if (std::optional<staged_usual> out = all.price(n)) return *std::move(out);
  throw bad_input("'" + r.model + "' has no plan " + wanted + " on " + to_string(inside));
}

// "cheap recomputed (all kept: 95.3 GiB)"
std::string what_is_kept(const staged_usual& u) {
  std::string out = u.kept;
  static constexpr const char* more[] = {"all kept", "cheap recomputed"};
  for (std::size_t n = 0; n < u.needs.size(); ++n) {
    char needs[80];
    std::snprintf(needs, sizeof needs, "%s%s: %.1f GiB", n == 0 ? " (" : ", ", more[n],
                  static_cast<double>(u.needs[n]) / (1 << 30));
    out += needs;
  }
  return out + (u.needs.empty() ? "" : ")");
}

// So many GPUs of the nodes that published figures are of, whose products with weights are in FP8.
machine h100s(int gpus) {
  machine m = load_machine(carried_machine("h100-8x8-400g"));
  m.device.weight_products = "float8";
  m.levels.back().joins = gpus / m.unit(m.levels.size() - 1);
  return m;
}

// What is asked of a search: so many rows a step on so many GPUs.
struct question {
  std::string model;
  int gpus = 1;
  long rows = 1, sequence = 1024;
};
struct answer {
  std::optional<staged_plan> plan;
  double seconds = 0;

  std::string layout() const {
    if (!plan) return "nothing fits";
    const staged_layout& l = plan->layout;
    return sizes_text(l.inside) + ", pipeline " + std::to_string(l.places) +
           (l.chunks > 1 ? ", " + std::to_string(l.chunks) + " chunks" : "") + ", " +
           std::to_string(plan->micro_batches) + " micro-batches, " + l.schedule;
  }
  double tokens(const question& q) const {  // per second and GPU
    return plan ? 1000 * static_cast<double>(q.rows * q.sequence) / q.gpus / plan->price.ms : 0;
  }
};

answer searched(const question& q) {
  const auto begin = std::chrono::steady_clock::now();
  staged_options options;
  options.machine.lowered_for = cuda::catalogue_target(number::bfloat16);
  options.tell = [&](const std::string& what) {
    std::fprintf(stderr, "%7.1f s  %s\n",
                 std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(), what.c_str());
  };
  const auto in_passes = [&](long rows, int micro_batches) {
    return training_graph(q.model, rows, q.sequence, micro_batches);
  };
  answer out{search_stages(in_passes, q.rows, h100s(q.gpus), options), 0};
  out.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return out;
}

// Rows of published throughput that have a pipeline: our price of the layout they ran, and what our search finds.
json published(const json& row) {
  const auto number_of = [&](const char* key) { return row.contains(key) ? row[key].get<int>() : 1; };
  const int gpus = number_of("gpus"), tensor = number_of("tp"), places = number_of("pp");
  const recipe r{row["model"],    gpus / (tensor * places), tensor,          places,
                 number_of("vp"), number_of("mbs"),         number_of("seq")};
  const long rows = number_of("gbs"), micro_batches = rows / (r.rows * r.data);
  const staged_usual run = price_of(r, h100s(gpus), static_cast<int>(micro_batches));
  const staged_price& price = run.price;
  const double tokens = static_cast<double>(rows * r.sequence) / gpus, said = row["tokens_s_gpu"],
               predicted = 1000 * tokens / price.ms;
  char layout[200];
  std::snprintf(layout, sizeof layout, "data %d, tensor %d, pipeline %d, %d chunks, %s", r.data, tensor, places,
                r.chunks, what_is_kept(run).c_str());
  std::printf("%-12s %5d GPUs  %-96s %8.0f %9.0f %8.3f %7.1f%% %6.1f GiB\n", r.model.c_str(), gpus, layout, said,
              predicted, predicted / said, 100 * price.idle, static_cast<double>(price.peak) / (1 << 30));
  std::fflush(stdout);
  const question q{r.model, gpus, rows, r.sequence};
  const answer found = searched(q);
  std::printf("%24s  %-96s %8s %9.0f %8.3f %7.1f%% %6.1f GiB %6.1f s\n", "found", found.layout().c_str(), "",
              found.tokens(q), found.tokens(q) / said, found.plan ? 100 * found.plan->price.idle : 0,
              found.plan ? static_cast<double>(found.plan->price.peak) / (1 << 30) : 0, found.seconds);
  std::fflush(stdout);
  return {{"model", r.model},
          {"gpus", gpus},
          {"layout", layout},
          {"published_tokens_s_gpu", said},
          {"predicted_tokens_s_gpu", predicted},
          {"found_layout", found.layout()},
          {"found_predicted", found.tokens(q)},
          {"seconds", found.seconds},
          {"idle", price.idle},
          {"peak_bytes", price.peak}};
}

// A search of many GPUs, that nothing was published of.
json of_many() {
  const question q{"llama-3-405b", 1024, 2048, 8192};
  const answer found = searched(q);
  std::printf("%-12s %5d GPUs  %-96s %8s %9.0f %8s %7.1f%% %6.1f GiB %6.1f s\n", q.model.c_str(), q.gpus,
              found.layout().c_str(), "", found.tokens(q), "", found.plan ? 100 * found.plan->price.idle : 0,
              found.plan ? static_cast<double>(found.plan->price.peak) / (1 << 30) : 0, found.seconds);
  return {{"model", q.model}, {"gpus", q.gpus}, {"seconds", found.seconds}};
}

json published_in(const std::string& path) {
  const std::optional<std::string> text = cfp::detail::whole_file(path);
  if (!text) throw bad_input("published figures " + path + ": cannot be read");
  std::printf("%-12s %10s  %-96s %8s %9s %8s %8s %10s\n", "model", "", "layout", "said", "predicted", "ratio", "idle",
              "peak");
  const json all = json::parse(*text);
  json out = json::array();
  for (const json& row : all["rows"])
    if (row.contains("pp") && row["pp"].get<int>() > 1) out.push_back(published(row));
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Schedules of a pipeline, predicted and measured on CPU ranks", "pipeline");
  std::string to, figures, model = "gpt2";
  families::model_sizes given{1, 128, 4};
  int micro_batches = 8, steps = 5;
  rank_link link{2e-5, 1e9};
  bool ranks = true;
  app.add_option("--json", to, "write the figures here");
  app.add_option("--published", figures, "rows of published throughput, a file: those with a pipeline are priced");
  app.add_flag("!--no-ranks", ranks, "leave out what is measured on CPU ranks");
  app.add_option("--model", model, "of examples/models")->capture_default_str();
  app.add_option("--layers", given.layers)->capture_default_str();
  app.add_option("--batch", given.batch, "rows of a micro-batch")->capture_default_str();
  app.add_option("--seq", given.sequence)->capture_default_str();
  app.add_option("--micro-batches", micro_batches)->capture_default_str()->check(CLI::Range(2, 1024));
  app.add_option("--steps", steps, "of each schedule, after one that is not counted")
      ->capture_default_str()
      ->check(CLI::Range(1, 10000));
  app.add_option("--bandwidth", link.bandwidth, "bytes per second over the link")->capture_default_str();
  app.add_option("--latency", link.latency, "seconds of a send")->capture_default_str();
  try {
    app.parse(argc, argv);
    json out;
    if (!figures.empty()) {
      const json rows = published_in(figures);
      json search = json::array();
      for (const json& row : rows)
        search.push_back({{"model", row["model"]}, {"gpus", row["gpus"]}, {"seconds", row["seconds"]}});
      search.push_back(of_many());
      out["published"] = rows, out["search"] = search;
    }
    if (ranks) out["executed"] = on_ranks(model, given, micro_batches, steps, link);
    if (!to.empty()) write_file(to, out.dump(1) + "\n");
    return 0;
  } catch (...) {
    return report<CLI::Error>(app);
  }
}
