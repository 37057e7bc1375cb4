// Everything there is to check and to measure on a GPU, in stages that each write a file: whole steps against the host,
// then steps, instructions and segments against what the GPU can do at most, measured in the same run.
#include "device.hpp"
#include "carried.hpp"
#include "report.hpp"

#include <cfp/backend/cuda/fusions.hpp>
#include <cfp/backend/threads.hpp>
#include <cfp/families/families.hpp>
#include <cfp/file/new_file.hpp>
#include <cfp/model/name_hash.hpp>
#include <cfp/model/random_words.hpp>
#include <cfp/plan/mesh_search.hpp>
#include <cfp/plan/named.hpp>
#include <cfp/plan/plan.hpp>
#include <cfp/plan/realise.hpp>
#include <cfp/plan/usual_plans.hpp>
#include <cfp/profile/gpu_here.hpp>
#include <cfp/profile/known_instructions.hpp>
#include <cfp/profile/machine/machine_file.hpp>
#include <cfp/session/train.hpp>

// CUDA's headers after Random123's, which take theirs for nvcc's.
#include <cfp/backend/cuda/device/describe_gpu.hpp>

#include <CLI/CLI.hpp>

#include <ctime>

using namespace cfp;
using namespace cfp::families;
using json = nlohmann::ordered_json;

namespace {

struct sized_model {
  graph g;
  long tokens = 0;
  double parameters = 0;
};

// A training graph for GPUs: no dropout, vocabularies padded as people do.
sized_model model_of(const std::string& path, long layers, long batch, long sequence) {
  const config_file file(path);
  training how;
  how.clip = 1;
  sized_model out;
  transformer c = read_decoder(file);
  if (layers > 0) c.layers = layers;
  c.vocabulary = (c.vocabulary + 127) / 128 * 128;
  c.batch = batch;
  c.sequence = sequence;
  c.embedding_dropout = c.attention_dropout = c.residual_dropout = 0;
  out.g = differentiate(refine(decoder(c)), how);
  for (const value& v : out.g.values)
    if (v.role == value_role::weight && v.producer < 0) out.parameters += static_cast<double>(elements(v.shape));
  out.tokens = batch * sequence;
  return out;
}

/// What is measured: what people run, or, to go through all of it where there is no GPU, as little as can be.
struct extent {
  bool tiny = false;
  device_bench::sizes of{};
  long batch = 16, sequence = 1024;
  int steps = 30;

  static extent smallest() {
    extent out{true, {1 << 16, 32, {0, 1, 1}, {0, 1, 1}, {0, 1, 1}}, 2, 8, 2};
    return out;
  }
  std::string model(const std::string& name) const {
    const std::string root = CFP_SOURCE_DIR;
    if (tiny) return root + (name.starts_with("llama") ? "/tests/tiny_llama.json" : "/tests/tiny_gpt.json");
    return root + "/examples/models/" + name + ".json";
  }
  long layers() const { return tiny ? 2 : 12; }
  sized_model gpt2(long layers) const { return model_of(model("gpt2"), layers, batch, sequence); }
};

// The program of a rank: replicated, or of the usual tensor parallelism of so many.
program program_of(const graph& g, int tensor, long real_bytes) {
  mesh_shape mesh;
  mesh.axes.push({"model", tensor});
  const decision_graph d = decisions(g, parallel_blocks(g), mesh);
  std::vector<int> choices(d.nodes.size(), 0);
  if (tensor > 1)
    for (const named_plan& p : usual_plans(mesh, false))
      if (p.name == "tensor") choices = follow(p, d, mesh);
  for (int& c : choices) c = std::max(c, 0);
  return realise("device", g, mesh, d, choices, real_bytes).code;
}

// What operators of a rank's program take, one kind measured once: what plans are priced by. Nothing if one cannot run
// here.
std::optional<double> operators_ms(program p, const graph& g, known_instructions& known) {
  cuda::catalogue_target(number::bfloat16).complete(p, g);
  double out = 0;
  for (std::size_t i = 0; i < p.code.size(); ++i)
    if (!p.code[i].nothing && !(p.code[i].communicates())) {
      const std::optional<double> ms = known(p.code[i], p, g);
      if (!ms) return std::nullopt;
      out += p.runs(i) * *ms;
    }
  return out;
}

// The same for every step's number, whatever runs it.
batch_source random_tokens(const graph& g) {
  return [&g](long step) {
    batch out;
    for (const value& v : g.values) {
      if (v.role != value_role::input) continue;
      const std::string input(v.label.view());
      std::vector<std::int32_t> x(static_cast<std::size_t>(elements(v.shape)));
      for (std::size_t i = 0; i < x.size(); ++i)
        x[i] = input == "positions" ? static_cast<std::int32_t>(i)
                                    : static_cast<std::int32_t>(
                                          random_words(5, name_hash(input) + static_cast<std::uint64_t>(step), i).v[0] %
                                          static_cast<std::uint32_t>(v.fill.bound));
      out[input] = std::move(x);
    }
    return out;
  };
}

// Largest relative difference of the losses of some steps.
double apart(const std::vector<double>& a, const std::vector<double>& b) {
  double out = 0;
  for (std::size_t i = 0; i < a.size(); ++i) difference::widen(out, std::abs(a[i] - b[i]) / std::abs(a[i]));
  return out;
}

std::vector<double> host_losses(const graph& g, int steps, std::uint64_t seed) {
  mesh_shape one;
  one.axes.push({"one", 1});
  program p = lower(g, one, sharding::replicated(g), all_operations(g), sizeof(float));
  plan_memory(p);
  return train(*threads(one), p, g, random_tokens(g), steps, seed).loss;
}

// Steps of small models on the GPU as on the host. Returns how many are wrong.
int check(json& report, const extent& x) {
  int wrong = 0;
  for (const char* name : {"gpt", "llama"}) {
    const sized_model m =
        model_of(std::string(CFP_SOURCE_DIR) + "/tests/tiny_" + name + ".json", x.tiny ? 1 : 0, 4, x.tiny ? 8 : 32);
    const std::vector<double> host = host_losses(m.g, 5, 3);
    for (const bool narrow : {false, true}) {
      const double bound = narrow ? 2e-2 : 1e-4;
      const double difference =
          apart(host, device_bench::losses(program_of(m.g, 1, narrow ? 2 : 4), m.g, narrow, 5, 3, random_tokens(m.g)));
      const bool right = difference <= bound;
      wrong += !right;
      std::printf("%-8s 5 steps in %-8s  loss within %.1e of the host's, allowed %.0e%s\n", name,
                  narrow ? "bfloat16" : "float32", difference, bound, right ? "" : "  WRONG");
      report.push_back(
          {{"model", name}, {"dtype", narrow ? "bfloat16" : "float32"}, {"difference", difference}, {"bound", bound}});
    }
  }
  return wrong;
}

void put(json& report, const std::vector<device_bench::instruction_figure>& all, const device_bench::ceilings& most) {
  std::set<std::string> seen;
  for (const auto& f : all) {
    std::string key = f.label + " " + std::to_string(f.rows) + " " + std::to_string(f.columns) + " " +
                      std::to_string(f.sums) + " " + std::to_string(f.bytes);
    if (!seen.insert(key).second) continue;
    const double GBps = f.bytes / f.cold.ms / 1e6, TFLOPs = f.flops / f.warm.ms / 1e9;
    if (f.kind == "product") {
      report["matmul"].push_back({{"name", f.label},
                                  {"m", f.rows},
                                  {"n", f.columns},
                                  {"k", f.sums},
                                  {"ms", f.warm.ms},
                                  {"TFLOPs", TFLOPs},
                                  {"fraction", TFLOPs / most.bf16_TFLOPs},
                                  {"fraction_of_best", f.best_ms / f.warm.ms}});
      std::printf("  %-44s %6ld x %6ld x %6ld %9.3f ms %7.1f TFLOP/s %5.1f%%\n", f.label.c_str(), f.rows, f.columns,
                  f.sums, f.warm.ms, TFLOPs, 100 * TFLOPs / most.bf16_TFLOPs);
    } else if (f.kind == "attention") {
      report["attention"].push_back({{"name", f.label},
                                     {"dtype", "bfloat16"},
                                     {"ms", f.warm.ms},
                                     {"TFLOPs", TFLOPs},
                                     {"fraction", TFLOPs / most.bf16_TFLOPs}});
      std::printf("  %-68s %9.3f ms %7.1f TFLOP/s %5.1f%%\n", f.label.c_str(), f.warm.ms, TFLOPs,
                  100 * TFLOPs / most.bf16_TFLOPs);
    } else if (f.bytes > 1e6) {  // smaller ones are launches
      report["kernels"].push_back({{"name", f.label},
                                   {"dtype", "bfloat16"},
                                   {"bytes", f.bytes},
                                   {"ms", f.cold.ms},
                                   {"ms_warm", f.warm.ms},
                                   {"GBps", GBps},
                                   {"fraction", GBps / most.copy_GBps}});
      std::printf("  %-44s %15.1f MB        %9.3f ms %7.0f GB/s    %5.1f%%\n", f.label.c_str(), f.bytes / 1e6,
                  f.cold.ms, GBps, 100 * GBps / most.copy_GBps);
    }
  }
}

// A stage of the measurement: its figures, and whether all is as it should be.
class bench_run {
 public:
  bench_run(const cuda::gpu_description& gpu, const extent& x, std::string folder, std::string torch)
      : gpu_(gpu), x_(x), folder_(std::move(folder)), torch_(std::move(torch)) {
    std::filesystem::create_directories(folder_);
  }

  static const std::vector<std::string>& stages() {
    static const std::vector<std::string> all = {"check", "step", "memory", "instructions", "prediction", "segments"};
    return all;
  }

  int run(const std::string& stage) {
    out_ = {{"gpu", gpu_.name},
            {"date", today()},
            {"driver", gpu_.driver},
            {"versions", {{"cuda", gpu_.cuda}, {"cublasLt", gpu_.cublas}, {"nccl", gpu_.nccl}}}};
    stage_ = stage;
    const int wrong = stage == "check"          ? check_stage()
                      : stage == "step"         ? step_stage()
                      : stage == "memory"       ? memory_stage()
                      : stage == "instructions" ? instructions_stage()
                      : stage == "prediction"   ? prediction_stage()
                                                : segments_stage();
    save();
    std::printf("written to %s\n", path(stage).c_str());
    return wrong > 0;
  }

 private:
  static std::string today() {
    char date[20];
    const std::time_t now = std::time(nullptr);
    std::strftime(date, sizeof date, "%Y-%m-%d", std::gmtime(&now));
    return date;
  }
  std::string path(const std::string& what) const {
    std::string stem = gpu_.name;
    std::replace(stem.begin(), stem.end(), ' ', '-');
    return folder_ + "/" + stem + "." + what + ".json";
  }
  // As soon as there is something: what comes later may fail.
  void save() const { write_file(path(stage_), out_.dump(1)); }

  device_bench::ceilings ceilings() {
    const device_bench::ceilings most = device_bench::measure_ceilings(x_.of);
    out_["ceilings"] = {{"copy_GBps", most.copy_GBps}, {"bf16_TFLOPs", most.bf16_TFLOPs}};
    std::printf("copy %.0f GB/s (read and written), bfloat16 products %.0f TFLOP/s: 100%% below\n", most.copy_GBps,
                most.bf16_TFLOPs);
    return most;
  }

  int check_stage() {
    out_["checks"] = json::array();
    return check(out_["checks"], x_);
  }

  int step_stage() {
    const device_bench::ceilings most = ceilings();
    const sized_model whole = x_.gpt2(x_.tiny ? 1 : x_.layers());
    const device_bench::step_figure step =
        device_bench::time_steps(program_of(whole.g, 1, 2), whole.g, x_.steps, random_tokens(whole.g));
    const double tokens = 1000 * static_cast<double>(whole.tokens) / step.step.ms;
    const double flops = 6 * whole.parameters + 6.0 * 12 * 768 * static_cast<double>(x_.sequence);  // of a token; of
    // attention the half that is seen
    const double fraction = tokens * flops / 1e12 / most.bf16_TFLOPs;
    json& figures = out_["gpt2_124m"] = {{"batch", x_.batch},
                                         {"sequence", x_.sequence},
                                         {"ms", step.step.ms},
                                         {"tokens_per_second", tokens},
                                         {"fraction", fraction},
                                         {"least_MHz", step.least_MHz},
                                         {"most_MHz", step.most_MHz},
                                         {"refused_epilogues", step.refused_epilogues},
                                         {"instructions", step.instructions},
                                         {"memory_bound_GB", step.memory_bound_GB},
                                         {"torch_eager", nullptr},
                                         {"torch_compile", nullptr}};
    if (std::ifstream file(torch_); file) {
      const json theirs = json::parse(file);
      for (const char* key : {"torch_eager", "torch_compile"}) figures[key] = theirs.at(key);
      out_["versions"]["torch"] = theirs.at("torch");
    }
    std::printf(
        "GPT-2 124M, %ld x %ld, bfloat16: step %.2f ms, %.0f tokens/s, %.1f%% of the matrix rate; clock %.0f to "
        "%.0f MHz\n",
        x_.batch, x_.sequence, step.step.ms, tokens, 100 * fraction, step.least_MHz, step.most_MHz);
    if (step.refused_epilogues > 0)
      std::printf("%ld products have their epilogues refused by cuBLASLt: none is expected\n", step.refused_epilogues);
    return step.refused_epilogues > 0;
  }

  // Plans within limits of memory for this GPU alone, found by what operators take on it and by what is carried to and
  // from the host, and run. Returns how many are wrong.
  int memory_stage() {
    const double host_GBps = device_bench::measure_host_rate(x_.of);
    out_["host_GBps"] = host_GBps;
    std::printf("%.1f GB/s to and from the host\n", host_GBps);
    std::fflush(stdout);
    const sized_model m =
        model_of(x_.model("alpa-gpt-350m"), x_.tiny ? 4 : 0, x_.tiny ? 4 : 8, x_.tiny ? 32 : x_.sequence);
    machine here = load_machine(carried_machine("h100-8"));
    here.levels.clear(), here.sweeps.clear();
    here.device.host_bandwidth = 1e9 * host_GBps;
    profile_table table = read_table();
    known_instructions known(table.instructions, gpu_here().ms);
    machine_options options;
    options.lowered_for = cuda::catalogue_target(number::bfloat16);
    options.known = &known;
    options.memory = static_cast<long>(gpu_.memory_GiB * 1073741824 * 0.95);  // contexts and libraries take some
    long free = 0;
    std::vector<double> losses;
    int wrong = 0;
    for (const int percent : {100, 80, 60, 50, 40, 30}) {
      if (free > 0) options.memory = free / 100 * percent;
      const std::vector<mesh_plans> found = search_meshes(m.g, here, options, meshes_of(here));
      const evaluated* const best = found.front().plans.found();
      if (best == nullptr) continue;
      if (free == 0) free = best->peak;
      const device_bench::step_figure step =
          device_bench::time_steps(best->p.code, m.g, x_.tiny ? x_.steps : 10, random_tokens(m.g));
      if (losses.empty()) losses = step.loss;
      const double difference = apart(losses, step.loss);
      // Sums of other algorithms are rounded otherwise; what is computed again or carried is the same.
      const bool right = difference <= 2e-2 && step.peak_bytes <= best->peak + step.beside_bytes;
      wrong += !right;
      put_memory(percent, *best, step, difference, right);
      table.save(path("operators"));
      save();
    }
    return wrong;
  }
  void put_memory(int percent, const evaluated& e, const device_bench::step_figure& step, double difference,
                  bool right) {
    const double GB = static_cast<double>(e.peak + step.beside_bytes) / 1e9,
                 held = static_cast<double>(step.peak_bytes) / 1e9,
                 there = static_cast<double>(e.p.code.host_bytes(true, true)) / 1e9;
    out_["memory"].push_back({{"percent", percent},
                              {"plan", e.p.name},
                              {"predicted_ms", e.when.ms},
                              {"exposed_ms", e.when.exposed},
                              {"measured_ms", step.step.ms},
                              {"predicted_GB", GB},
                              {"held_GB", held},
                              {"on_host_GB", there},
                              {"loss_apart", difference}});
    std::printf(
        "  %3d%% of the memory  %8.2f ms predicted, %8.2f measured; %6.2f GB predicted, %6.2f held, %6.2f on the "
        "host; loss within %.1e%s\n",
        percent, e.when.ms, step.step.ms, GB, held, there, difference, right ? "" : "  WRONG");
    std::fflush(stdout);
  }

  int instructions_stage() {
    const device_bench::ceilings most = ceilings();
    for (const char* list : {"kernels", "matmul", "attention"}) out_[list] = json::array();
    const sized_model one = x_.gpt2(1);
    const std::vector<device_bench::instruction_figure> all =
        device_bench::time_instructions(program_of(one.g, 1, 2), one.g, x_.of);
    put(out_, all, most);
    double alone = 0;  // one after the other, with all that fits in the caches
    for (const auto& f : all) alone += f.warm.ms;
    const double step = step_ms(one);
    out_["gaps"] = {{"instructions_ms", alone}, {"step_ms", step}, {"fraction_at_most", 1 - alone / step}};
    std::printf("a step of one layer, replayed: %.2f ms, its instructions %.2f: gaps of %.1f%% at most\n", step, alone,
                100 * (1 - alone / step));
    return 0;
  }

  int prediction_stage() {
    const sized_model whole = x_.gpt2(x_.layers());
    profile_table table = read_table();
    known_instructions known(table.instructions, gpu_here().ms);
    const double predicted = operators_ms(program_of(whole.g, 1, 2), whole.g, known).value_or(0);
    table.save(path("operators"));
    // As a search corrects its sums: by segments that run whole.
    const double one = step_ms(x_.gpt2(1)), two = step_ms(x_.gpt2(2));
    const double corrected = one + static_cast<double>(x_.layers() - 1) * (two - one), measured = step_ms(whole);
    out_["prediction"] = {{"predicted_ms", predicted},
                          {"predicted_by_segments_ms", corrected},
                          {"measured_ms", measured},
                          {"kinds", known.asked}};
    std::printf("step %.2f ms, %.2f ms predicted from %d kinds of operators, %.2f ms by a whole segment\n", measured,
                predicted, known.asked, corrected);
    return 0;
  }

  int segments_stage() {
    std::printf("segments of a rank, one layer forward, backward and update, collectives left out, bfloat16\n");
    profile_table table = read_table();
    known_instructions known(table.instructions, gpu_here().ms);
    out_["segments"] = json::array();
    for (const auto& [name, rows] : {std::pair("alpa-gpt-2.6b", 8l), std::pair("llama-3-8b", 2l)})
      for (const int tensor : {1, 2, 4, 8}) {
        if (x_.tiny && tensor > 2) continue;
        std::optional<double> ms[2];
        for (const long layers : {1l, 2l}) {
          const sized_model m = model_of(x_.model(name), layers, rows, x_.sequence);
          ms[layers - 1] = operators_ms(program_of(m.g, tensor, 2), m.g, known);
        }
        json one{{"model", name}, {"tensor", tensor}, {"batch", rows}, {"sequence", x_.sequence}, {"ms", nullptr}};
        if (ms[0] && ms[1]) one["ms"] = *ms[1] - *ms[0];
        out_["segments"].push_back(one);
        if (ms[0] && ms[1]) std::printf("  %-16s tensor %d  %8.3f ms\n", name, tensor, *ms[1] - *ms[0]);
        else std::printf("  %-16s tensor %d  needs more memory than there is\n", name, tensor);
        save();
        table.save(path("operators"));
      }
    return 0;
  }

  double step_ms(const sized_model& m) const {
    return device_bench::time_steps(program_of(m.g, 1, 2), m.g, x_.steps, random_tokens(m.g)).step.ms;
  }

  // Kinds of operators that an earlier stage has measured.
  profile_table read_table() const {
    profile_table out;
    out.origin = {gpu_.name, "operators", "any"};
    if (std::filesystem::exists(path("operators")))
      if (const std::string why = out.load(path("operators")); !why.empty()) throw std::runtime_error(why);
    return out;
  }

  const cuda::gpu_description gpu_;
  const extent x_;
  const std::string folder_, torch_;
  std::string stage_;
  json out_;
};

int run(int argc, char** argv) {
  std::string folder = std::string(CFP_SOURCE_DIR) + "/bench/results", torch, stage;
  bool only_ask = false, tiny = false;
  CLI::App app{"Checks and measures what runs on a GPU."};
  app.add_option("--out", folder, "write the figures into this folder, a file for each stage");
  app.add_option("--stage", stage, "only this one")->check(CLI::IsMember(bench_run::stages()));
  app.add_option("--torch", torch, "what bench/torch_gpt2.py wrote on the same GPU");
  app.add_flag("--tiny", tiny, "the smallest of everything: to see that all of it runs");
  app.add_flag("--gpu", only_ask, "say what there is, and nothing else: exit code 3 without a GPU");
  CLI11_PARSE(app, argc, argv);
  cuda::gpu_description gpu;
  try {
    gpu = cuda::describe_gpu();
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 3;
  }
  std::printf("%s, %.0f GiB\n", gpu.name.c_str(), gpu.memory_GiB);
  if (only_ask) return 0;
  int failed = 0;
  bench_run bench(gpu, tiny ? extent::smallest() : extent{}, folder, torch);
  for (const std::string& s : bench_run::stages())
    if (stage.empty() || s == stage) failed |= bench.run(s);
  return failed;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (...) {
    return report();
  }
}
