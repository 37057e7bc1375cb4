// What the example programs share: options, planning, training under the plan, verification, comparison and the summary.
#pragma once

#include "counting_new.hpp"
#include "gpu.hpp"
#include "read_config.hpp"

#include <cfp/plan/header.hpp>
#include <cfp/plan/mesh_search.hpp>
#include <cfp/plan/reasons.hpp>
#include <cfp/profile/machine_file.hpp>

#include <CLI/CLI.hpp>

#if defined(CFP_EXAMPLE_MPI)
#include <cfp/runtime/mpi/run_processes.hpp>
#endif

#include <iostream>
#include <optional>
#include <unistd.h>

namespace example {

using namespace cfp;

/// Sizes given on the command line; 0: those of the configuration.
struct asked {
  long layers = 0, batch = 4, sequence = 32, vocabulary = 0;
  long least_groups = 2;  ///< of sequences whose tokens are routed together

  long padded(long vocabulary_given) const { return vocabulary > 0 ? vocabulary : (vocabulary_given + 127) / 128 * 128; }
};

/// A model of given sizes.
struct built {
  graph forward;
  std::string sizes;  ///< "layers=2 width=768 ...": what tells it from others of its kind
  long layers = 0, vocabulary = 0, vocabulary_given = 0;
  driver::inputs inputs{};
};

/// Gives a configuration the sizes asked for, and notes them.
template <class Config>
void resize(Config& c, const asked& sizes, built& out) {
  out.vocabulary_given = c.vocabulary;
  out.layers = c.layers = sizes.layers > 0 ? sizes.layers : c.layers;
  out.vocabulary = c.vocabulary = sizes.padded(c.vocabulary);
  c.batch = sizes.batch;
  c.sequence = sizes.sequence;
}

/// "layers=2 width=768"
inline std::string sizes_text(std::initializer_list<std::pair<const char*, long>> sizes) {
  std::string out;
  for (const auto& [label, n] : sizes) out.append(out.empty() ? "" : " ").append(label).append(1, '=').append(std::to_string(n));
  return out;
}

inline void fits(const char* key, long sequence, long positions, const config_file& file) {
  if (sequence > positions)
    throw bad_input("--seq " + std::to_string(sequence) + " exceeds " + key + " " + std::to_string(positions) + " of " + file.path);
}

/// One example program.
struct example_info {
  const char* description;
  const char* model;  ///< unless --model says another
  std::function<built(const config_file&, const asked&)> build;
};

struct options {
  std::string backend = "threads", model, machine, mesh = "data=2", type = "float32", text, profile_mode = "full", profile, save_plan, save_header, use_plan, against, save_state, load_state, summary;
  bool explain = false;
  long layers = 0, batch = 4, sequence = 32, steps = 10, memory = 0, vocabulary = 0;
  int compare = 20, micro_batches = 1;
  double rate = 3e-4, clip = 1;
  std::vector<long> schedule{2, 1000};
  bool analyse = false, mesh_given = false;
  std::uint64_t seed = 1;
};

/// At most so many devices.
inline mesh_shape read_mesh(const std::string& text, int most) {
  const auto fail = [&](const std::string& why) { return bad_input("--mesh " + text + ": " + why); };
  mesh_shape mesh;
  std::stringstream in(text);
  for (std::string item; std::getline(in, item, ',');) {
    const std::size_t equals = item.find('=');
    if (equals == std::string::npos || equals == 0) throw fail("write axes as name=size, for example data=2,model=2");
    const std::string label = item.substr(0, equals), size = item.substr(equals + 1);
    if (label.size() > 23) throw fail("an axis name has at most 23 characters");
    if (size.empty() || size.find_first_not_of("0123456789") != std::string::npos || size.size() > 3 || std::stoi(size) < 1)
      throw fail("the size of axis '" + label + "' must be a number from 1 to 999, is '" + size + "'");
    if (mesh.find(label) >= 0) throw fail("axis '" + label + "' stands twice");
    if (mesh.rank() == max_axes) throw fail("a mesh has at most 4 axes");
    mesh.axes.push({name(label), std::stoi(size)});
  }
  if (mesh.rank() == 0) throw fail("no axis");
  if (mesh.devices() > most) throw fail(std::to_string(mesh.devices()) + " ranks, at most " + std::to_string(most) + " run as threads");
  return mesh;
}

inline std::string read_text(const std::string& path, long need) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw bad_input("--text " + path + ": cannot be read");
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (static_cast<long>(text.size()) < need)
    throw bad_input("--text " + path + ": has " + std::to_string(text.size()) + " bytes, a sequence needs " + std::to_string(need));
  return text;
}

/// Of several processes the first speaks and writes files.
inline int process = 0;
inline bool is_first() { return process == 0; }

/// One line on a terminal, nothing elsewhere.
class progress_line {
 public:
  void show(const std::string& what, double share) {
    if (!terminal_) return;
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
    std::fprintf(stderr, "\r\033[K%3.0f%% %s", 100 * share, what.c_str());
    if (share > 0.02) std::fprintf(stderr, ", about %.0f s left", seconds / share - seconds);
    std::fflush(stderr);
  }
  void clear() {
    if (terminal_) std::fprintf(stderr, "\r\033[K");
    begin_ = std::chrono::steady_clock::now();
  }

 private:
  bool terminal_ = is_first() && isatty(2) != 0;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

inline std::string format_ms(double ms) {
  char out[32];
  std::snprintf(out, sizeof out, "%.3g ms", ms);
  return out;
}

inline double log10_per_operator(const graph& g, const mesh_shape& mesh) {
  double log = 0;
  for (const operation& o : g.operations) {
    if (o.when != phase::forward) continue;
    int choices = 1;
    for (const factor& f : o.r.factors) choices += !f.whole;
    log += mesh.rank() * std::log10(static_cast<double>(choices));
  }
  return log;
}

inline void print_plan(const plan& p, const graph& g, const decision_graph& d, const cost_graph& costs) {
  const std::vector<collective_count> sent = sent_for(p, g, d);
  std::printf("\n%-38s %-30s %8s  %s\n", "decision", "choice", "ms", "sent for it by each rank");
  for (const bool parts : {true, false})
    for (std::size_t n = 0; n < d.nodes.size(); ++n) {
      const auto c = static_cast<std::size_t>(p.choices[n]);
      if ((d.nodes[n].kind == decision::strategy_of_part) != parts || d.nodes[n].choices() < 2) continue;
      char ms[16] = "";
      if (!costs.nodes.empty() && !d.nodes[n].operations.empty()) std::snprintf(ms, sizeof ms, "%.2f", costs.nodes[n].time[c]);
      std::printf("%-38s %-30s %8s  %s\n", (parts ? d.nodes[n].label : decision_label(d.nodes[n])).c_str(), d.nodes[n].names[c].c_str(), ms,
                  describe(sent[n]).c_str());
    }
}

inline nlohmann::ordered_json count_json(const collective_count& n) {
  nlohmann::ordered_json j;
  for (std::size_t k = 0; k < 4; ++k) j[std::string(collective_names[k])] = n.calls[k];
  return j;
}

// The choices of a plan that --save-plan wrote.
inline std::vector<int> saved_choices(const std::string& option, const std::string& path, const std::string& model, const decision_graph& d, double* predicted = nullptr) {
  std::ifstream file(path);
  if (!file) throw bad_input(option + " " + path + ": cannot be read");
  try {
    const nlohmann::json j = nlohmann::json::parse(file);
    if (j.at("model") != model) throw bad_input(option + " " + path + ": is of model '" + std::string(j.at("model")) + "', this is '" + model + "'");
    if (predicted) *predicted = j.at("predicted_ms");
    return choices_from_json(j, d);
  } catch (const bad_input&) {
    throw;
  } catch (const std::exception& e) {
    throw bad_input(option + " " + path + ": " + e.what());
  }
}

// "some/gpt_plan.hpp" -> gpt_plan
inline std::string header_space(const std::string& file) {
  std::string stem = file.substr(file.find_last_of('/') + 1);
  stem = stem.substr(0, stem.find('.'));
  for (char& c : stem)
    if (!cfp::is_name_character(c)) c = '_';
  return stem.empty() || (stem[0] >= '0' && stem[0] <= '9') ? "plan_" + stem : stem;
}

inline long role_bytes(const program& p, const graph& g, value_role role) {
  long n = 0;
  for (std::size_t b = 0; b < p.buffers.size(); ++b)
    if (p.buffers[b].persistent && p.buffers[b].root == static_cast<int>(b) && g[p.buffers[b].value].role == role)
      n += p.buffers[b].bytes;
  return n;
}

/// Replicated, and of the plans people use: a kind of data parallelism everywhere, and with plain data parallelism outside those that an
/// axis is for: the sequence where it is named so, else tensors and experts.
inline std::vector<named_plan> named_plans(const graph& g, const mesh_shape& mesh, axis_choice::rest_t furthest) {
  std::vector<named_plan> out{{"replicated", std::vector<std::string>(static_cast<std::size_t>(mesh.rank()), "")}};
  const bool of_sequence = mesh.axes[mesh.rank() - 1].label == "sequence";
  for (const named_plan& p : usual_plans(mesh, has_experts(g))) {
    const std::size_t plus = p.name.find('+');
    const std::string outer = p.name.substr(0, plus), inner = plus == std::string::npos ? outer : p.name.substr(plus + 1);
    const bool data = inner == "data_parallel" || inner == "zero2" || (inner == "zero3" && furthest == axis_choice::regathered);
    const bool right = of_sequence ? inner == "context" || inner == "ulysses" : inner == "tensor" || inner == "tensor_sequence" || inner == "expert";
    if (plus == std::string::npos ? data || (right && mesh.rank() == 1) : outer == "data_parallel" && right) out.push_back(p);
  }
  return out;
}

/// What the plans people use need of a device, without running anything.
inline void analyse(const graph& g, const mesh_shape& mesh, const decision_graph& d, const std::vector<named_plan>& named, const std::string& type, long real_bytes,
                    double seconds) {
  double parameters = 0;
  for (const value& v : g.values)
    if (v.role == value_role::weight && v.producer < 0) parameters += static_cast<double>(elements(v.shape));
  std::printf("%.3f billion parameters; analysed in %.2f s\n\n%-29s %12s %12s %14s %14s\n", parameters / 1e9, seconds, ("plan (" + type + ")").c_str(), "weights GiB",
              "optimizer", "arena", "sent MiB");
  const double gib = 1 << 30;
  for (const named_plan& n : named) {
    std::vector<int> choices = follow(n, d, mesh);
    for (std::size_t i = 0; i < choices.size(); ++i) choices[i] = std::max(choices[i], 0);
    const plan p = realise(n.name, g, mesh, d, choices, real_bytes);
    std::printf("%-29s %12.2f %12.2f %14.2f %14.1f\n", n.name.c_str(), static_cast<double>(role_bytes(p.code, g, value_role::weight)) / gib,
                static_cast<double>(role_bytes(p.code, g, value_role::state)) / gib, static_cast<double>(p.code.arena_bytes) / gib,
                static_cast<double>(count_collectives(p.code, g).total_bytes()) / 1048576);
  }
}

/// What a saved plan is of.
inline std::string model_id(const options& o, const built& net) {
  return o.model + " " + net.sizes + (o.micro_batches > 1 ? " micro_batches=" + std::to_string(o.micro_batches) : "") + (o.type == "float32" ? "" : " " + o.type);
}

/// Whether any part can be split at all.
inline bool splits(const decision_graph& d) {
  return std::any_of(d.nodes.begin(), d.nodes.end(), [](const decision& n) { return n.kind == decision::strategy_of_part && n.choices() > 1; });
}

/// What operators take on a machine's devices: as it is described, as the GPU here runs them, or from a table that was made so.
class operator_times {
 public:
  explicit operator_times(const options& o) : on_gpu_(o.backend == "cuda"), path_(o.profile) {
    if (!given()) return;
    const std::string option = on_gpu_ ? "--backend cuda" : "--profile " + path_;
    if (o.type != "bfloat16") throw bad_input(option + ": operators are measured in bfloat16; leave out --type");
    table_.origin = {"", "operators", "any"};
    if (on_gpu_) {
      try {
        gpu_ = gpu();
      } catch (const std::runtime_error& e) {
        throw bad_input(option + ": " + e.what());
      }
      table_.origin.machine = gpu_.name;
    }
    if (!path_.empty() && (!on_gpu_ || std::filesystem::exists(path_)))
      if (const std::string why = table_.load(path_); !why.empty()) throw bad_input("--profile " + path_ + ": " + why + (on_gpu_ ? "; name another file" : "; --backend cuda makes one, on a GPU"));
    known_.emplace(table_.instructions, gpu_.run);
  }
  operator_times(const operator_times&) = delete;
  ~operator_times() {  // what was measured is kept, however it ended
    try {
      keep();
    } catch (const std::exception& e) {
      std::fprintf(stderr, "%s\n", e.what());
    }
  }

  bool given() const { return on_gpu_ || !path_.empty(); }
  void use_in(machine_options& options, const std::function<void(const std::string&)>& tell) {
    if (!given()) return;
    options.lowered_for = cuda::catalogue_target<bf16>();
    options.known = &*known_;
    known_->tell = tell;
  }
  /// Writes the table if it grew.
  void keep() {
    if (path_.empty() || !known_ || known_->asked == kept_) return;
    kept_ = known_->asked;
    table_.save(path_);
  }
  std::string words() const {
    if (!given()) return "all times are simulated";
    const std::string rest = known_->unknown.empty() ? "" : ", and " + std::to_string(known_->unknown.size()) + " kinds of operators that its table lacks";
    return "operators as measured on " + table_.origin.machine + "; as the machine is described: collectives" + rest;
  }

 private:
  bool on_gpu_;
  std::string path_;
  gpu_here gpu_;
  profile_table table_;
  std::optional<known_instructions> known_;
  int kept_ = 0;  // kinds it had been asked when the table was last written
};

/// Plans for a machine that is described, on all its meshes or the one given; nothing is trained.
inline int plan_for_machine(const options& o, const example_info& info) {
  for (const auto& [option, given] : {std::pair("--plan", !o.use_plan.empty()), {"--against", !o.against.empty()}, {"--load-state", !o.load_state.empty()},
                                      {"--save-state", !o.save_state.empty()}, {"--explain", o.explain}, {"--analyse", o.analyse}, {"--backend", o.backend == "mpi"}})
    if (given) throw bad_input(std::string("--machine simulates and runs nothing: leave out ") + option);
  const machine m = load_machine(carried_file("machines", "--machine", o.machine));
  const config_file config(o.model);
  const long batch = o.batch > 0 ? o.batch : 4l * m.devices();
  if (batch % o.micro_batches != 0)
    throw bad_input("--batch " + std::to_string(batch) + " cannot be cut into " + std::to_string(o.micro_batches) + " micro-batches of whole sequences");
  const built net = info.build(config, {o.layers, batch / o.micro_batches, o.sequence, o.vocabulary, m.devices()});
  training how;
  how.clip = o.clip;
  how.micro_batches = o.micro_batches;
  const graph g = differentiate(refine(net.forward), how);
  machine_options options;
  options.memory = o.memory;
  options.lowered_for = o.type == "float32" ? sizeof(float) : sizeof(bf16);
  operator_times measured(o);
  const std::vector<mesh_shape> meshes = o.mesh_given ? std::vector<mesh_shape>{read_mesh(o.mesh, std::numeric_limits<int>::max())} : meshes_of(m);
  progress_line line;
  std::size_t begun = 0;
  const auto share = [&] { return static_cast<double>(begun > 0 ? begun - 1 : 0) / static_cast<double>(meshes.size()); };
  measured.use_in(options, [&](const std::string& what) { line.show("measuring " + what.substr(0, 80), share()); });
  std::vector<mesh_plans> all;
  try {
    all = search_meshes(g, m, options, meshes, [&](const mesh_shape& mesh) { ++begun, line.show("planning for mesh " + sizes_text(mesh), share()); });
  } catch (const std::invalid_argument& e) {
    throw bad_input(std::string(e.what()) + "; take another --mesh, or none");
  }
  line.clear();
  measured.keep();
  const double gib = 1 << 30;
  std::printf("%s: %s, %s, on %s with %.1f GiB a device; %s\n\n%-8s %12s %10s   %-36s %s\n", o.model.c_str(), net.sizes.c_str(), o.type.c_str(), m.name.c_str(),
              static_cast<double>(options.memory > 0 ? options.memory : m.device.memory) / gib, measured.words().c_str(), "mesh", "found", "peak GiB", "best plan people use", "Alpa's");
  const auto text = [](const evaluated* e) {
    char out[80] = "none fits";
    if (e != nullptr) std::snprintf(out, sizeof out, "%.1f ms  %s", e->when.ms, e->p.name.c_str());
    return std::string(out);
  };
  nlohmann::ordered_json summary{{"model", o.model}, {"machine", m.name}, {"type", o.type}, {"batch", batch}, {"sequence", o.sequence}, {"times", measured.words()}, {"meshes", nlohmann::ordered_json::array()}};
  for (const mesh_plans& on : all) {
    const evaluated* e = on.plans.found();
    summary["meshes"].push_back({{"mesh", sizes_text(on.mesh)}, {"plans", nlohmann::ordered_json::array()}});
    for (const std::vector<evaluated>* some : {&on.plans.candidates, &on.plans.usual, &on.plans.alpa})
      for (const evaluated& x : *some)
        summary["meshes"].back()["plans"].push_back({{"name", x.p.name}, {"step_ms", x.when.ms}, {"peak_bytes", x.peak}, {"fits", x.fits}});
    if (e == nullptr) std::printf("%-8s nothing fits, the leanest plan tried needs %.2f GiB\n", sizes_text(on.mesh).c_str(), static_cast<double>(on.plans.least) / gib);
    else if (on.plans.usual.empty()) std::printf("%-8s %9.1f ms %10.2f   not compared\n", sizes_text(on.mesh).c_str(), e->when.ms, static_cast<double>(e->peak) / gib);
    else
      std::printf("%-8s %9.1f ms %10.2f   %-36s %s\n", sizes_text(on.mesh).c_str(), e->when.ms, static_cast<double>(e->peak) / gib, text(priced_plans::fastest(on.plans.usual)).c_str(),
                  text(priced_plans::fastest(on.plans.alpa)).c_str());
  }
  const mesh_plans& best = all.front();
  if (best.plans.found() == nullptr)
    throw bad_input("no plan fits; take more --memory or another --machine, a smaller --batch" + std::string(o.type == "float32" ? ", more --micro-batches, or --type bfloat16" : ", or more --micro-batches"));
  if (!splits(best.decisions)) throw bad_input("mesh " + sizes_text(best.mesh) + " divides nothing of the model: " + net.sizes + "; take another --mesh");
  const plan& found = best.plans.found()->p;
  std::printf("\nplan for mesh");
  for (int a = 0; a < best.mesh.rank(); ++a) std::printf("%s%s=%d", a ? "," : " ", std::string(best.mesh.axes[a].label.view()).c_str(), best.mesh.size(a));
  std::printf(", the last axis innermost: %.1f ms of operators, %.1f ms more in which they wait for collectives\n", best.plans.found()->when.operators, best.plans.found()->when.exposed);
  print_plan(found, g, best.decisions, machine_search(g, best.mesh, best.decisions, m, options).costs());
  if (!o.summary.empty()) profile_table::write_file(o.summary, summary.dump(1));
  if (!o.save_plan.empty()) profile_table::write_file(o.save_plan, to_json(found, g, best.mesh, best.decisions, model_id(o, net)).dump(1));
  if (!o.save_header.empty()) {
    const block_structure blocks = parallel_blocks(g);
    const segmentation parts = segments(g, blocks);
    const segment_times times(blocks, parts, best.decisions);
    profile_table::write_file(o.save_header, plan_header(header_space(o.save_header), model_id(o, net), found, g, best.mesh, times));
  }
  return 0;
}

/// Throws bad_input unless every process was given the same: they plan alike, each by itself.
template <class Pool>
void same_everywhere(Pool& pool, const options& o, const std::string& arguments) {
  std::vector<std::int64_t> least, most;
  const std::vector<std::pair<std::string, std::string>> files{{"the model", o.model}, {"--text", o.text}, {"--profile", o.profile}, {"--plan", o.use_plan}, {"--against", o.against}};
  const auto put = [&](const std::string& bytes) { least.push_back(static_cast<std::int64_t>(host::name_hash(bytes))); };
  put(arguments);
  for (const auto& [what, path] : files) {
    std::ifstream file(path, std::ios::binary);
    put(std::string(std::istreambuf_iterator<char>(file), {}));
  }
  most = least;
  pool.run([&](auto& rank) {
    rank.world.all_reduce(least.data(), least.size(), reduction::min);
    rank.world.all_reduce(most.data(), most.size(), reduction::max);
  });
  if (least[0] != most[0]) throw bad_input("--backend mpi: the processes were started with different options; give all of them the same");
  for (std::size_t i = 0; i < files.size(); ++i)
    if (least[i + 1] != most[i + 1]) throw bad_input("--backend mpi: the processes read different files for " + files[i].first + " (" + files[i].second + "); copy the same one to every machine");
}

/// What ranks do, whatever they are: threads, processes. Numbers are stored as T.
template <class T>
struct ranks {
  virtual ~ranks() = default;
  virtual int on_this_machine() = 0;
  virtual bool oversubscribed() = 0;
  virtual std::unique_ptr<profiler> measure(const graph& g, const mesh_shape& mesh, const decision_graph& d, const host::kernels<T>& k, profile_table& table) = 0;
  /// See driver::train.
  virtual driver::trained<float> train_in_full(const program& p, const graph& g, const host::kernels<float>& k, const driver::byte_text& text, long steps, std::uint64_t seed,
                                               const host::state_file<float>* from, host::state_file<float>* to, bool saves) = 0;
  virtual driver::trained<T> train(const program& p, const graph& g, const host::kernels<T>& k, const driver::byte_text& text, long steps, std::uint64_t seed,
                                   const host::state_file<float>* from, host::state_file<float>* to, bool saves) = 0;
  virtual std::vector<driver::observed> race(const std::vector<const plan*>& plans, const graph& g, const mesh_shape& mesh, const host::kernels<T>& k, const driver::byte_text& text, int steps,
                                             std::uint64_t seed, const std::function<void(int, int)>& tell) = 0;
};

template <class T, class Pool>
class ranks_of : public ranks<T> {
 public:
  explicit ranks_of(const mesh_shape& mesh) : pool_(driver::sizes(mesh)) {}
  int on_this_machine() override { return pool_.on_this_machine(); }
  bool oversubscribed() override { return is_oversubscribed(pool_); }
  std::unique_ptr<profiler> measure(const graph& g, const mesh_shape& mesh, const decision_graph& d, const host::kernels<T>& k, profile_table& table) override {
    return std::make_unique<profiler>(g, mesh, d, k, pool_, table);
  }
  driver::trained<float> train_in_full(const program& p, const graph& g, const host::kernels<float>& k, const driver::byte_text& text, long steps, std::uint64_t seed,
                                       const host::state_file<float>* from, host::state_file<float>* to, bool saves) override {
    return driver::train<float, float, Pool>(p, g, k, text, steps, seed, from, to, saves);
  }
  driver::trained<T> train(const program& p, const graph& g, const host::kernels<T>& k, const driver::byte_text& text, long steps, std::uint64_t seed,
                           const host::state_file<float>* from, host::state_file<float>* to, bool saves) override {
    return driver::train<T, float, Pool>(p, g, k, text, steps, seed, from, to, saves);
  }
  std::vector<driver::observed> race(const std::vector<const plan*>& plans, const graph& g, const mesh_shape& mesh, const host::kernels<T>& k, const driver::byte_text& text, int steps,
                                     std::uint64_t seed, const std::function<void(int, int)>& tell) override {
    return driver::race<T, Pool>(plans, g, mesh, k, text, steps, seed, tell);
  }

 private:
  Pool pool_;
};

template <class T>
using make_ranks = std::unique_ptr<ranks<T>> (*)(const mesh_shape&);
template <class T, class Pool>
std::unique_ptr<ranks<T>> ranks_in(const mesh_shape& mesh) { return std::make_unique<ranks_of<T, Pool>>(mesh); }

/// Numbers are stored as T.
template <class T>
int run(const options& o, const example_info& info, make_ranks<T> make) {
  // What can be wrong is checked before anything long begins.
  const mesh_shape mesh = read_mesh(o.mesh, o.backend == "threads" ? 64 : std::numeric_limits<int>::max());
  const config_file config(o.model);
  if (o.batch % o.micro_batches != 0)
    throw bad_input("--batch " + std::to_string(o.batch) + " cannot be cut into " + std::to_string(o.micro_batches) + " micro-batches of whole sequences");
  const long rows = o.batch / o.micro_batches;
  asked sizes{o.layers, rows, o.sequence, o.vocabulary};
  if (sizes.layers == 0 && config.carried && !o.analyse) sizes.layers = 2;  // a few minutes on two cores
  const built net = info.build(config, sizes);
  if (!o.use_plan.empty() && (o.explain || !o.against.empty())) throw bad_input("--explain and --against need measurements, --plan makes none: leave one out");
  if (net.vocabulary < 256) throw bad_input("the vocabulary must hold at least the 256 byte values, is " + std::to_string(net.vocabulary));
  const std::string corpus = o.text.empty() ? std::string(CFP_SOURCE_DIR) + "/LICENSE" : o.text;
  const driver::byte_text text(read_text(corpus, o.sequence + net.inputs.reach() + 1), rows, o.sequence, o.seed, net.inputs);

  const auto analysis_begin = std::chrono::steady_clock::now();
  training how;
  how.rate = o.rate;
  how.warmup = o.schedule[0];
  how.steps = o.schedule[1];
  how.last_rate = o.rate / 10;
  how.clip = o.clip;
  how.micro_batches = o.micro_batches;
  const graph g = differentiate(refine(net.forward), how);
  const block_structure blocks = parallel_blocks(g);
  const segmentation parts = segments(g, blocks);
  // To gather weights again for backward saves memory and never time: a choice only where memory is asked about.
  const axis_choice::rest_t furthest = o.memory > 0 || o.analyse ? axis_choice::regathered : axis_choice::scattered;
  const decision_graph d = decisions(g, blocks, mesh, furthest);
  int forward = 0;
  for (const operation& op : g.operations) forward += op.when == phase::forward;
  std::set<std::string> unique;
  long strategies = 0;
  double log_blocks = 0;
  for (const decision& n : d.nodes)
    if (n.kind == decision::strategy_of_part) {
      log_blocks += std::log10(static_cast<double>(n.choices()));
      if (unique.insert(fingerprint(g, n.operations)).second) strategies += static_cast<long>(n.choices());
    }
  const double log_operators = log10_per_operator(g, mesh);
  std::printf("%s: %s, mesh %s\n", o.model.c_str(), net.sizes.c_str(), o.mesh.c_str());
  if (net.vocabulary != net.vocabulary_given) std::printf("vocabulary %ld padded to %ld\n", net.vocabulary_given, net.vocabulary);
  std::printf("%d operators (%d forward) -> %zu blocks (%d unique) -> %zu segments (%d unique)\n", g.size(), forward,
              blocks.blocks.size(), parts.unique_blocks, parts.segments.size(), parts.unique);
  std::printf("search space: 10^%.0f per operator, 10^%.0f per block; %ld strategies to measure\n", log_operators, log_blocks, strategies);

  if (!splits(d) && mesh.devices() > 1)
    throw bad_input("--mesh " + o.mesh + " divides nothing of the model: " + net.sizes + "; choose axis sizes that divide one of them");
  for (const std::string& why : d.uneven) std::printf("left out: %s\n", why.c_str());
  const std::vector<named_plan> named = named_plans(g, mesh, furthest);
  if (o.analyse) {
    analyse(g, mesh, d, named, o.type, sizeof(T), std::chrono::duration<double>(std::chrono::steady_clock::now() - analysis_begin).count());
    return 0;
  }

  mesh_shape one;
  one.axes.push({"one", 1});
  program single = lower(g, one, sharding::replicated(g), all_operations(g), sizeof(float));
  plan_memory(single);
  const std::unique_ptr<ranks<T>> everyone = make(mesh);
  const int here = everyone->on_this_machine();
  const bool oversubscribed = everyone->oversubscribed();
  const double needed = static_cast<double>(predicted_peak(single)) * here / (1 << 30);
  const double present = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE)) / (1 << 30);
  if (needed > present)
    throw bad_input("replicated on " + std::to_string(here) + " ranks this needs " + std::to_string(static_cast<long>(needed + 1)) + " GiB, the machine has " +
                    std::to_string(static_cast<long>(present)) + "; take fewer --layers, a smaller --batch or --seq, or --analyse");

  std::optional<host::state_file<float>> loaded;
  if (!o.load_state.empty()) loaded.emplace(host::state_file<float>::open(o.load_state, g));
  const host::state_file<float>* const from = loaded ? &*loaded : nullptr;

  const host::kernels<T> kernels;
  const host::kernels<float> in_float;
  const std::string id = model_id(o, net);
  progress_line line;
  std::vector<plan> plans;  // the found one first
  cost_graph costs;
  double profile_seconds = 0, solve_seconds = 0;
  double gap = 0;
  int profiled = 0, tried = 0;
  profiler::knowledge known;
  std::string explanation;
  const auto now = [] { return std::chrono::steady_clock::now(); };
  const auto since = [&](auto t) { return std::chrono::duration<double>(now() - t).count(); };

  if (!o.use_plan.empty()) {
    double predicted = 0;
    plans.push_back(realise("found", g, mesh, d, saved_choices("--plan", o.use_plan, id, d, &predicted), sizeof(T)));
    plans[0].predicted_ms = predicted;
  } else {
    profile_table table;
    table.origin = {this_machine(), id, o.mesh};
    if (!o.profile.empty() && std::filesystem::exists(o.profile))
      if (const std::string why = table.load(o.profile); !why.empty())
        std::fprintf(stderr, "profile %s ignored: %s\n", o.profile.c_str(), why.c_str());
    const std::vector<int> against = o.against.empty() ? std::vector<int>() : saved_choices("--against", o.against, id, d);
    const std::unique_ptr<profiler> measuring_ranks = everyone->measure(g, mesh, d, kernels, table);
    profiler& measure_with = *measuring_ranks;
    const auto start = now();
    const auto measuring = [&](int done, int all, const std::string& what) { line.show("measuring " + what, all ? static_cast<double>(done) / all : 0); };
    measure_with.tell = measuring;
    if (o.profile_mode == "lazy") {
      measure_with.be_lazy();
      costs = measure_with.costs();
    } else {
      costs = measure_with.build();
    }
    const segment_times whole(blocks, parts, d);
    plan_search search(g, mesh, d, whole, measure_with, costs);
    for (const named_plan& n : named) {
      line.show("running the segments of plan " + n.name, 1);
      search.add(n.name, follow(n, d, mesh));
    }
    if (!o.against.empty()) search.add(o.against, against);
    search_options limits;
    if (o.memory > 0) limits.memory_limit = o.memory;
    try {
      plans = search.run(limits, [&](const std::string& what) { line.show(what, 1); });
    } catch (const nothing_fits& e) {
      throw bad_input("--memory " + std::to_string(o.memory) + ": no plan fits" +
                      (e.least > 0 ? "; the least any plan needs is " + std::to_string(e.least) + " bytes, " +
                                         std::to_string(e.least - o.memory) + " more" : std::string()));
    }
    solve_seconds = search.solve_seconds;
    tried = search.rounds;
    gap = search.gap;
    profile_seconds = since(start) - solve_seconds;
    profiled = measure_with.measured;
    costs = search.costs();
    if (o.explain) {
      solve_options brief;
      brief.max_seconds = 10;
      explanation = reasons(costs, search.corrected(), d, plans, limits.memory_limit, brief);
    }
    if (o.profile_mode == "lazy") known = measure_with.known();
    if (!o.profile.empty() && is_first()) table.save(o.profile);
    line.clear();
  }
  const plan& found = plans[0];
  if (known.of > 0)
    std::printf("of %d figures %d were measured; bounds say that no other plan is faster%s\n", known.of, known.measured,
                known.below_bound > 0 ? (", but " + std::to_string(known.below_bound) + " figures were below theirs, by at most " + format_ms(known.by)).c_str() : "");
  std::printf("measured %d programs in %.1f s, solved in %.1f ms\n", profiled, profile_seconds, 1000 * solve_seconds);
  if (o.use_plan.empty())
    std::printf("found after running the segments of %d plans; %.1f ms by parts, %.1f ms by segments; untried plans: at most %.1f%% faster by parts\n",
                tried, found.additive_ms, found.predicted_ms, 100 * gap);
  print_plan(found, g, d, costs);
  if (!explanation.empty()) std::printf("\n%s", explanation.c_str());

  // Verification: the same steps on one rank.
  constexpr bool rounded = !std::is_same_v<T, wide_t<T>>;
  driver::difference apart, apart_rounded;
  driver::trained<float> alone, together;
  driver::undecided rounding;
  if (o.steps > 0) {
    line.show("training on one rank", 0);
    alone = driver::train(single, g, in_float, text, o.steps, o.seed, from);
    line.show("training on one rank in float64", 0.3);
    program precise = lower(g, one, sharding::replicated(g), all_operations(g), sizeof(double));
    plan_memory(precise);
    rounding = driver::rounding_decides(alone, driver::train(precise, g, host::kernels<double>(), text, o.steps, o.seed, from), g);
    line.show("training under the plan", 0.7);
    std::optional<host::state_file<float>> to;
    const bool saves = !o.save_state.empty();
    if (saves && is_first()) to.emplace(host::state_file<float>::create(o.save_state, g, (from ? from->step() : 0) + o.steps));
    host::state_file<float>* const state = to ? &*to : nullptr;
    const plan in_full = realise("found", g, mesh, d, found.choices);
    together = everyone->train_in_full(in_full.code, g, in_float, text, o.steps, o.seed, from, rounded ? nullptr : state, saves && !rounded);
    if constexpr (rounded) {
      line.show("training under the plan in " + o.type, 0.85);
      const driver::trained<T> stored = everyone->train(found.code, g, kernels, text, o.steps, o.seed, from, state, saves);
      for (std::size_t s = 0; s < stored.loss.size(); ++s)
        driver::widen(apart_rounded.loss, std::abs(stored.loss[s] - alone.loss[s]) / std::abs(alone.loss[s]));
    }
    if (to) to->commit();
    line.clear();
    apart = driver::compare(alone, together, g, rounding);
    if (from) std::printf("\ngoing on after step %ld of %s", from->step(), o.load_state.c_str());
    std::printf("\nverified over %ld steps: loss %.4f -> %.4f, largest relative difference %.1e; parameters %.1e (%s)\n", o.steps,
                alone.loss.front(), alone.loss.back(), apart.loss, apart.parameters, apart.worst.c_str());
    if (rounded) std::printf("that was in float32; in %s the loss is within %.1e of it\n", o.type.c_str(), apart_rounded.loss);
    if (rounding.count > 0)
      std::printf("left out of %ld parameters: %ld that float32 rounding alone decides on one rank, most of %s\n", rounding.of, rounding.count,
                  rounding.most.c_str());
  }

  std::vector<const plan*> racing;
  for (const plan& p : plans) racing.push_back(&p);
  std::vector<driver::observed> seen;
  if (o.compare > 0)
    seen = everyone->race(racing, g, mesh, kernels, text, o.compare, o.seed,
                        [&](int done, int all) { line.show("comparing plans", static_cast<double>(done) / all); });
  std::vector<std::array<double, 3>> ratios;
  for (const driver::observed& s : seen) ratios.push_back(driver::paired_ratio(s.ms, seen[0].ms));
  // A plan that seems faster beyond doubt must be so on fresh steps too.
  for (std::size_t p = 1; p < seen.size(); ++p) {
    if (ratios[p][2] >= 0.95) continue;
    const auto again = everyone->race({racing[0], racing[p]}, g, mesh, kernels, text, o.compare, o.seed + 1,
                                    [&](int done, int all) { line.show("checking " + plans[p].name + " again", static_cast<double>(done) / all); });
    ratios[p] = driver::paired_ratio(again[1].ms, again[0].ms);
  }
  line.clear();
  nlohmann::ordered_json summary;
  summary["model"] = o.model;
  summary["layers"] = net.layers;
  summary["batch"] = o.batch;
  summary["sequence"] = o.sequence;
  summary["type"] = o.type;
  for (const mesh_axis& a : mesh.axes) summary["mesh"][std::string(a.label.view())] = a.size;
  summary["operators"] = g.size();
  summary["blocks"] = blocks.blocks.size();
  summary["segments"] = {{"total", parts.segments.size()}, {"unique", parts.unique}};
  summary["search"] = {{"exhaustive_log10", log_operators}, {"strategies", strategies}, {"profiled", profiled}};
  summary["profile_seconds"] = profile_seconds;
  summary["solve_seconds"] = solve_seconds;
  summary["plans"] = nlohmann::ordered_json::array();
  std::printf("\n%-29s %10s %10s %10s %22s %10s %12s\n", "plan", "predicted", "measured", "tokens/s", "time / found's", "peak MiB", "sent MiB");
  bool counts_agree = true, faster = false;
  for (std::size_t p = 0; p < seen.size(); ++p) {
    const collective_count inferred = count_collectives(plans[p].code, g);
    counts_agree = counts_agree && inferred == seen[p].sent;
    const double ms = median(seen[p].ms);
    const auto& ratio = ratios[p];
    faster = faster || ratio[2] < 0.95;
    std::printf("%-29s %7.1f ms %7.1f ms %10.0f    %5.3f [%5.3f, %5.3f] %10.1f %12.2f\n", plans[p].name.c_str(), plans[p].predicted_ms, ms,
                1000.0 * static_cast<double>(o.batch * o.sequence) / ms, ratio[0], ratio[1], ratio[2],
                static_cast<double>(seen[p].peak_bytes) / 1048576, static_cast<double>(seen[p].sent.total_bytes()) / 1048576);
    summary["plans"].push_back({{"name", plans[p].name}, {"predicted_ms", plans[p].predicted_ms}, {"measured_ms", ms},
                                {"predicted_peak_bytes", predicted_peak(plans[p].code)}, {"measured_peak_bytes", seen[p].peak_bytes},
                                {"ratio_to_found", ratio}, {"collectives", count_json(seen[p].sent)}, {"bytes_per_rank", seen[p].sent.total_bytes()},
                                {"outside_kernels", seen[p].outside}});
  }
  if (faster && !oversubscribed) std::printf("a compared plan is faster than the found one, on fresh steps too: what was measured does not hold here\n");
  if (oversubscribed) std::printf("oversubscribed: %d ranks on %u threads; these times are no timings\n", here, std::thread::hardware_concurrency());
  summary["oversubscribed"] = oversubscribed;
  summary["verification"] = {{"steps", o.steps}, {"loss_single", alone.loss}, {"loss_parallel", together.loss},
                             {"max_relative_error", apart.loss}, {"parameters_max_relative_error", apart.parameters},
                             {"parameters", rounding.of}, {"parameters_left_out", rounding.count}};
  const program_memory kept = memory_of(found.code, g);
  const long weights = role_bytes(found.code, g, value_role::weight), state = role_bytes(found.code, g, value_role::state);
  std::printf("memory per rank of the found plan, MiB: weights %.1f, optimizer %.1f, activations kept for backward %.1f, transient (gradients too) %.1f\n",
              static_cast<double>(weights) / 1048576, static_cast<double>(state) / 1048576,
              static_cast<double>(kept.kept - weights - state) / 1048576, static_cast<double>(kept.transient) / 1048576);
  if (!o.save_plan.empty() && is_first()) profile_table::write_file(o.save_plan, to_json(found, g, mesh, d, id).dump(1));
  if (!o.save_header.empty() && is_first()) {
    const segment_times times(blocks, parts, d);
    profile_table::write_file(o.save_header, plan_header(header_space(o.save_header), id, found, g, mesh, times));
  }
  if (!o.summary.empty() && is_first()) profile_table::write_file(o.summary, summary.dump(1));
  if (!counts_agree) {
    std::fprintf(stderr, "collectives counted in the communicators differ from those inferred from the rules\n");
    return 1;
  }
  if (o.steps > 0 && !(apart.loss <= 1e-4 && apart.parameters <= 1e-3 && rounding.count * 100 <= rounding.of && apart_rounded.loss <= 2e-2)) {
    std::fprintf(stderr, "the plan does not train as one rank does\n");
    return 1;
  }
  return 0;
}

/// Says what was thrown, and returns the exit code for it.
inline int report() {
  const auto say = [](const char* what, int code) {
    if (is_first()) std::fprintf(stderr, "%s\n", what);
    return code;
  };
  try {
    throw;
  } catch (const bad_input& e) {
    return say(e.what(), 2);
  } catch (const invalid_machine& e) {
    return say(e.what(), 2);
  } catch (const host::bad_state& e) {
    return say(e.what(), 2);
  } catch (const shape_error& e) {
    return say(words(e).characters, 2);
  } catch (const char* e) {
    return say(e, 1);
  } catch (const rank_failure& e) {
    if (!is_first() && e.errors().front().rank == process) std::fprintf(stderr, "%s\n", e.what());  // the first may not be there any more
    return say(e.what(), 1);
  } catch (const std::exception& e) {
    return say(e.what(), 1);
  }
}

/// Runs it in ranks of the kind asked for.
template <class T>
int run_ranks_of(const options& o, const example_info& info, [[maybe_unused]] const std::string& arguments) {
  if (o.backend == "threads") return run<T>(o, info, &ranks_in<T, rank_pool>);
  if (o.backend == "cuda") throw bad_input("--backend cuda measures what the devices of a machine compute, on one of them: say which machine with --machine");
#if defined(CFP_EXAMPLE_MPI)
  const process_job job;
  MPI_Comm_rank(MPI_COMM_WORLD, &process);
  if (!is_first() && std::freopen("/dev/null", "w", stdout) == nullptr) throw std::runtime_error("/dev/null cannot be opened");
  try {
    const mesh_shape mesh = read_mesh(o.mesh, std::numeric_limits<int>::max());
    try {
      process_pool pool(driver::sizes(mesh));
      same_everywhere(pool, o, arguments);
    } catch (const std::invalid_argument& e) {
      throw bad_input("--mesh " + o.mesh + ": " + e.what());
    }
    return run<T>(o, info, &ranks_in<T, process_pool>);
  } catch (...) {  // before MPI ends
    return report();
  }
#else
  throw bad_input("--backend mpi: this program was built without MPI; install libopenmpi-dev and build it again");
#endif
}

/// The program: 0 all well, 1 a promise was broken, 2 bad input.
inline int run_example(int argc, char** argv, const example_info& info) {
  options o;
  o.model = info.model;
  CLI::App app{std::string(info.description) + ": plans it for CPU ranks, verifies the plan against one rank and compares it with the plans people use."};
  app.add_option("--model", o.model, "a model of examples/models by name, or a configuration file of that format")->capture_default_str();
  app.add_option("--layers", o.layers, "layers; of a model of examples/models 2 unless given, else as many as the configuration has")->check(CLI::Range(1l, 10000l));
  app.add_option("--batch", o.batch, "sequences per step")->check(CLI::Range(1l, 1000000l))->capture_default_str();
  app.add_option("--micro-batches", o.micro_batches, "pieces a step's batch comes in; their gradients are added up")->check(CLI::Range(1, 100000))->capture_default_str();
  app.add_option("--seq", o.sequence, "tokens per sequence")->check(CLI::Range(1l, 1000000l))->capture_default_str();
  app.add_option("--vocabulary", o.vocabulary, "do not pad the vocabulary to a multiple of 128 but take this size");
  app.add_option("--backend", o.backend, "what ranks are: threads of this program, or processes that mpirun starts, one per device of the mesh. Or cuda, only together with --machine: the GPU here tells what operators take")
      ->check(CLI::IsMember({"threads", "mpi", "cuda"}))->capture_default_str();
  app.add_option("--mesh", o.mesh, "ranks along named axes, for example data=2 or data=2,model=2")->capture_default_str();
  app.add_option("--machine", o.machine, "plan for a machine of examples/machines by name, or for a file of that format: simulate, run nothing. Unless said otherwise of all layers, 4 sequences of 1024 for each of its devices, in bfloat16, on every mesh of one or two axes");
  app.add_option("--type", o.type, "what numbers are stored as; weights, sums and optimizer state are float32 either way")
      ->check(CLI::IsMember({"float32", "bfloat16"}))->capture_default_str();
  app.add_option("--steps", o.steps, "training steps to verify")->check(CLI::Range(0l, 100000l))->capture_default_str();
  app.add_option("--rate", o.rate, "learning rate after the warm-up")->check(CLI::Range(0.0, 1e3))->capture_default_str();
  app.add_option("--schedule", o.schedule, "steps of warm-up, and the step at which a cosine reaches a tenth of the rate (0: never)")
      ->expected(2)->delimiter(',')->check(CLI::Range(0l, 1000000000l))->capture_default_str();
  app.add_option("--clip", o.clip, "most the norm of all gradients may be (0: any)")->check(CLI::Range(0.0, 1e30))->capture_default_str();
  app.add_option("--compare", o.compare, "steps of each plan in the comparison")->check(CLI::Range(0, 100000))->capture_default_str();
  app.add_option("--text", o.text, "file whose bytes are the tokens");
  app.add_option("--memory", o.memory, "most bytes a rank may use")->check(CLI::Range(1l, 1l << 50));
  app.add_option("--profile-mode", o.profile_mode, "measure everything, or only what plans that may be the best use")
      ->check(CLI::IsMember({"full", "lazy"}))->capture_default_str();
  app.add_option("--profile", o.profile, "table of measured times to read and extend; with --machine one that --backend cuda made");
  app.add_option("--save-plan", o.save_plan, "write the found plan");
  app.add_option("--save-header", o.save_header, "write the found plan as a C++ header that the compiler checks");
  app.add_flag("--explain", o.explain, "say what else each decision could do, and where other plans lose");
  app.add_option("--against", o.against, "a saved plan to run and compare beside those people use");
  app.add_option("--plan", o.use_plan, "run a saved plan, measuring nothing");
  app.add_option("--save-state", o.save_state, "write weights and optimizer state after the steps verified (safetensors)");
  app.add_option("--load-state", o.load_state, "go on from such a file, whatever mesh it was written on");
  app.add_option("--summary", o.summary, "write the summary as JSON");
  app.add_flag("--analyse", o.analyse, "show blocks, segments, strategies and memory of all layers, run nothing");
  app.add_option("--seed", o.seed, "of initial weights and batches")->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    const int code = app.exit(e);
    return code == 0 ? 0 : 2;
  }
  std::string arguments;
  for (int i = 1; i < argc; ++i) arguments.append(argv[i]).append(1, '\n');
  o.mesh_given = app.get_option("--mesh")->count() > 0;
  const bool described = app.get_option("--machine")->count() > 0;
  if (described) {  // what people train there, unless said otherwise
    if (app.get_option("--type")->count() == 0) o.type = "bfloat16";
    if (app.get_option("--batch")->count() == 0) o.batch = 0;
    if (app.get_option("--seq")->count() == 0) o.sequence = 1024;
  }
  try {
    if (described) return plan_for_machine(o, info);
    return o.type == "float32" ? run_ranks_of<float>(o, info, arguments) : run_ranks_of<bf16>(o, info, arguments);
  } catch (...) {
    return report();
  }
}

}  // namespace example
