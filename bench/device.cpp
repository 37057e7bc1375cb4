// Everything there is to check and to measure on a GPU: kernels and whole steps against the host, then instructions,
// steps and segments against what the GPU can do at most, measured in the same run.
#include "device.hpp"

#include <cfp/backend/cuda/fusions.hpp>
#include <cfp/backend/threads.hpp>
#include <cfp/families/families.hpp>
#include <cfp/model/name_hash.hpp>
#include <cfp/model/random_words.hpp>
#include <cfp/plan/named.hpp>
#include <cfp/plan/plan.hpp>
#include <cfp/plan/realise.hpp>
#include <cfp/plan/usual_plans.hpp>
#include <cfp/profile/gpu_here.hpp>
#include <cfp/profile/known_instructions.hpp>
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

std::string model_path(const std::string& name) {
  return std::string(CFP_SOURCE_DIR) + "/examples/models/" + name + ".json";
}

// A training graph for GPUs: no dropout, vocabularies padded as people do.
sized_model model_of(const std::string& path, long layers, long batch, long sequence) {
  const config_file file(path);
  training how;
  how.clip = 1;
  sized_model out;
  const auto sized = [&](auto c) {
    if (layers > 0) c.layers = layers;
    c.vocabulary = (c.vocabulary + 127) / 128 * 128;
    c.batch = batch;
    c.sequence = sequence;
    return c;
  };
  if (file.type({"gpt2", "llama"}) == "llama") {
    out.g = differentiate(refine(llama(sized(read_llama(file)))), how);
  } else {
    gpt_config c = sized(read_gpt(file));
    c.embedding_dropout = c.attention_dropout = c.residual_dropout = 0;
    out.g = differentiate(refine(gpt(c)), how);
  }
  for (const value& v : out.g.values)
    if (v.role == value_role::weight && v.producer < 0) out.parameters += static_cast<double>(elements(v.shape));
  out.tokens = batch * sequence;
  return out;
}

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
    if (!p.code[i].nothing && !(p.code[i].kind == instruction::reshard && p.code[i].step.communicates())) {
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
int check(json& report) {
  int wrong = 0;
  for (const char* name : {"gpt", "llama"}) {
    const sized_model m = model_of(std::string(CFP_SOURCE_DIR) + "/tests/tiny_" + name + ".json", 0, 4, 32);
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

int run(int argc, char** argv) {
  std::string to, torch;
  bool only_check = false, only_ask = false;
  CLI::App app{"Checks and measures what runs on a GPU."};
  app.add_option("--json", to, "write the figures here; else bench/results/GPU.json");
  app.add_option("--torch", torch, "what bench/torch_gpt2.py wrote on the same GPU");
  app.add_flag("--check", only_check, "measure nothing");
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
  json out{{"gpu", gpu.name},
           {"date", ""},
           {"driver", gpu.driver},
           {"versions", {{"cuda", gpu.cuda}, {"cublasLt", gpu.cublas}, {"nccl", gpu.nccl}}},
           {"ceilings", nullptr},
           {"checks", json::array()},
           {"kernels", json::array()},
           {"matmul", json::array()},
           {"attention", json::array()},
           {"gpt2_124m", nullptr},
           {"segments", json::array()},
           {"prediction", nullptr}};
  char date[20];
  const std::time_t now = std::time(nullptr);
  std::strftime(date, sizeof date, "%Y-%m-%d", std::gmtime(&now));
  out["date"] = date;
  const int wrong = check(out["checks"]);
  if (only_check || wrong > 0) return wrong > 0;

  if (to.empty()) {
    std::string stem = gpu.name;
    std::replace(stem.begin(), stem.end(), ' ', '-');
    to = std::string(CFP_SOURCE_DIR) + "/bench/results/" + stem + ".json";
    std::filesystem::create_directories(std::filesystem::path(to).parent_path());
  }
  const device_bench::ceilings most = device_bench::measure_ceilings();
  out["ceilings"] = {{"copy_GBps", most.copy_GBps}, {"bf16_TFLOPs", most.bf16_TFLOPs}};
  std::printf("\ncopy %.0f GB/s (read and written), bfloat16 products %.0f TFLOP/s: 100%% below\n", most.copy_GBps,
              most.bf16_TFLOPs);

  const long batch = 16, sequence = 1024;
  std::printf("\nGPT-2 124M, %ld x %ld, bfloat16\n", batch, sequence);
  {
    const sized_model one = model_of(model_path("gpt2"), 1, batch, sequence);
    put(out, device_bench::time_instructions(program_of(one.g, 1, 2), one.g), most);
  }
  profile_table table;
  table.origin = {gpu.name, "operators", "any"};
  known_instructions known(table.instructions, gpu_here().ms);
  // Written as soon as there is something: what comes later may fail.
  const std::string operators = std::filesystem::path(to).replace_extension(".operators.json").string();
  const auto save = [&] {
    profile_table::write_file(to, out.dump(1));
    table.save(operators);
  };
  save();
  const sized_model whole = model_of(model_path("gpt2"), 12, batch, sequence);
  const device_bench::step_figure step =
      device_bench::time_steps(program_of(whole.g, 1, 2), whole.g, 30, random_tokens(whole.g));
  const double predicted = operators_ms(program_of(whole.g, 1, 2), whole.g, known).value_or(0);
  const double tokens = 1000 * static_cast<double>(whole.tokens) / step.step.ms;
  const double flops = 6 * whole.parameters +
                       6.0 * 12 * 768 * static_cast<double>(sequence);  // a token; of attention the half that is seen
  out["gpt2_124m"] = {{"ms", step.step.ms},
                      {"tokens_per_second", tokens},
                      {"fraction", tokens * flops / 1e12 / most.bf16_TFLOPs},
                      {"least_MHz", step.least_MHz},
                      {"most_MHz", step.most_MHz},
                      {"torch_eager", nullptr},
                      {"torch_compile", nullptr}};
  if (std::ifstream file(torch); file) {
    const json theirs = json::parse(file);
    for (const char* key : {"torch_eager", "torch_compile"}) out["gpt2_124m"][key] = theirs.at(key);
    out["versions"]["torch"] = theirs.at("torch");
  }
  out["prediction"] = {{"predicted_ms", predicted}, {"measured_ms", step.step.ms}, {"kinds", known.asked}};
  save();
  std::printf(
      "\nstep %.2f ms, %.0f tokens/s, %.1f%% of the matrix rate; %.2f ms predicted from %d kinds of operators; clock "
      "%.0f to %.0f MHz\n",
      step.step.ms, tokens, 100 * tokens * flops / 1e12 / most.bf16_TFLOPs, predicted, known.asked, step.least_MHz,
      step.most_MHz);

  std::printf("\nsegments of a rank, one layer forward, backward and update, collectives left out, bfloat16\n");
  for (const auto& [name, rows] : {std::pair("alpa-gpt-2.6b", 8l), std::pair("llama-3-8b", 2l)})
    for (const int tensor : {1, 2, 4, 8}) {
      std::optional<double> ms[2];
      for (const long layers : {1l, 2l}) {
        const sized_model m = model_of(model_path(name), layers, rows, sequence);
        ms[layers - 1] = operators_ms(program_of(m.g, tensor, 2), m.g, known);
      }
      json one{{"model", name}, {"tensor", tensor}, {"batch", rows}, {"sequence", sequence}, {"ms", nullptr}};
      if (ms[0] && ms[1]) one["ms"] = *ms[1] - *ms[0];
      out["segments"].push_back(one);
      if (ms[0] && ms[1]) std::printf("  %-16s tensor %d  %8.3f ms\n", name, tensor, *ms[1] - *ms[0]);
      else std::printf("  %-16s tensor %d  needs more memory than there is\n", name, tensor);
      save();
    }
  std::printf("\nwritten to %s; %d kinds of operators, for --machine ... --profile, to %s\n", to.c_str(), known.asked,
              operators.c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
