// How long plans for described machines take to find, stage by stage: large models on many devices, and one model ever
// deeper. Every case runs in a process of its own, which says how much memory it took, and ends at a limit of time.
#include "carried.hpp"
#include "report.hpp"

#include <cfp/families/families.hpp>
#include <cfp/file/new_file.hpp>
#include <cfp/session/plan_for.hpp>

#include <CLI/CLI.hpp>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <mutex>
#include <thread>

using namespace cfp;
using json = nlohmann::ordered_json;

namespace {

struct searched {
  std::string model, machine = "h100-8", mesh{};  ///< no mesh: all of one and two axes
  long batch = 32, sequence = 1024;
  int micro_batches = 1;
  int axes = 2;         ///< most of a mesh
  int nodes = 0;        ///< that the machine has in place of its own
  long layers = 0;      ///< of the model in place of its own
  long memory = 0;      ///< bytes of a device; 0: what the machine says
  bool depth = false;   ///< one of a row of depths
  bool folded = false;  ///< its graph says "this layer, so many times"

  std::string label() const {
    return model + (depth       ? " x" + std::to_string(layers) + (folded ? " folded" : "")
                    : axes == 2 ? ""
                                : " " + std::to_string(axes) + " axes");
  }
};

std::vector<searched> all_cases() {
  std::vector<searched> out{
      {.model = "t5-small", .mesh = "x=4,y=2"},
      {.model = "gpt2-xl"},
      {.model = "llama-3-8b"},
      {.model = "bench/neox_20b.json"},
      {.model = "mixtral-8x7b", .machine = "h100-8x8-400g", .batch = 256},
      {.model = "llama-3-70b", .machine = "h100-8x8-400g", .batch = 64, .sequence = 4096, .micro_batches = 8},
      {.model = "llama-3-70b",
       .machine = "h100-8x8-400g",
       .batch = 64,
       .sequence = 4096,
       .micro_batches = 8,
       .axes = 3},
      {.model = "llama-3-405b",
       .machine = "h100-8x8-400g",
       .batch = 1024,
       .sequence = 4096,
       .micro_batches = 8,
       .nodes = 128},
  };
  for (const bool folded : {false, true})
    for (const long layers : {100, 200, 400, 1000, 3000, 10000})
      out.push_back(
          {.model = "gpt2", .mesh = "x=2,y=4", .layers = layers, .memory = 1L << 50, .depth = true, .folded = folded});
  return out;
}

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// What is known of a search so far.
class search_report {
 public:
  stage_clock clock{};

  json text(const machine_plan* found) const {
    rusage used{};
    getrusage(RUSAGE_SELF, &used);
    const auto seconds_of = [](const timeval& t) {
      return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
    };
    json out{{"finished", found != nullptr},
             {"seconds", seconds_since(begin_)},
             {"processor_seconds", seconds_of(used.ru_utime) + seconds_of(used.ru_stime)},
             {"of", json::object()},
             {"peak_mib", static_cast<double>(used.ru_maxrss) / 1024}};
    for (std::size_t s = 0; s < stage_names.size(); ++s) out["of"][stage_names[s]] = clock.seconds()[s];
    if (found == nullptr) return out;
    out["meshes"] = found->meshes.size();
    const machine_plan::priced* const best = found->meshes.front().fastest();
    out["step_ms"] = best == nullptr ? json() : json(best->ms);
    out["plan"] = best == nullptr ? json() : json(best->plan);
    out["mesh"] = found->meshes.front().mesh;
    out["gap"] = best == nullptr ? json() : json(best->gap);
    return out;
  }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

machine_plan find(const searched& s, stage_clock& clock) {
  machine m = load_machine(carried_machine(s.machine));
  if (s.nodes > 0) m.levels.back().joins = s.nodes;
  families::model_sizes sizes;
  sizes.batch = s.batch / s.micro_batches;
  sizes.sequence = s.sequence;
  sizes.layers = s.layers;
  sizes.folded = s.folded;
  sizes.pad_to = 128;
  sizes.least_groups = m.devices();
  const graph forward = [&] {
    const stage_timer building(&clock, stage::graph);
    return build_model(families::config_file(carried_model(s.model)), sizes).forward;
  }();
  machine_plan_options o;
  o.mesh = s.mesh;
  o.axes = s.axes;
  o.memory = s.memory;
  o.micro_batches = s.micro_batches;
  o.how.clip = 1;
  o.clock = &clock;
  return plan_for(forward, m, o);
}

/// Searches, and writes what it found; at the limit, what took how long until then. The process ends with it.
[[noreturn]] void search(const searched& s, double limit, double most_gib, int to) {
  search_report report;
  const auto bytes = static_cast<rlim_t>(most_gib * (1 << 30));
  const rlimit memory{bytes, bytes};
  setrlimit(RLIMIT_AS, &memory);  // what exceeds it fails here, and nothing else of the machine
  std::mutex writing;
  const auto end_with = [&](const json& j) {
    const std::lock_guard lock(writing);  // for good: one of the two ends
    const std::string text = j.dump();
    _exit(::write(to, text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? 0 : 1);
  };
  std::thread([&] {
    std::this_thread::sleep_for(std::chrono::duration<double>(limit));
    end_with(report.text(nullptr));
  }).detach();
  try {
    const machine_plan found = find(s, report.clock);
    end_with(report.text(&found));
  } catch (const std::exception& e) {
    json out = report.text(nullptr);
    out["error"] = e.what();
    end_with(out);
  }
  _exit(1);
}

/// In a process of its own.
json searched_alone(const searched& s, double limit, double most_gib) {
  int ends[2];
  if (pipe(ends) != 0) throw std::runtime_error("no pipe");
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("no process");
  if (child == 0) {
    close(ends[0]);
    search(s, limit, most_gib, ends[1]);
  }
  close(ends[1]);
  std::string text;
  char part[4096];
  for (ssize_t n = 0; (n = read(ends[0], part, sizeof part)) > 0;) text.append(part, static_cast<std::size_t>(n));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (text.empty())
    throw std::runtime_error(s.label() + ": the search ended with signal " + std::to_string(WTERMSIG(status)));
  return json::parse(text);
}

void print(const std::string& label, const json& j) {
  std::printf("%-20s %8.2f%s %8.2f", label.c_str(), j["seconds"].get<double>(), j["finished"] ? " " : "!",
              j["processor_seconds"].get<double>());
  for (const char* stage : stage_names) std::printf(" %10.3f", j["of"][stage].get<double>());
  std::printf(" %9.0f", j["peak_mib"].get<double>());
  if (j.contains("error")) std::printf("  %s\n", j["error"].get<std::string>().c_str());
  else if (!j["finished"]) std::printf("  not finished\n");
  else if (j["step_ms"].is_null()) std::printf("  nothing fits\n");
  else
    std::printf("  %10.3f ms  %s of %zu, %s\n", j["step_ms"].get<double>(), j["mesh"].get<std::string>().c_str(),
                j["meshes"].get<std::size_t>(), j["plan"].get<std::string>().c_str());
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("How long plans for described machines take to find", "scale");
  std::string to;
  std::vector<std::string> only;
  double limit = 300, most_gib = 14;
  app.add_option("--json", to, "write the figures here");
  app.add_option("--limit", limit, "seconds after which a case is left unfinished")->capture_default_str();
  app.add_option("--most-gib", most_gib, "address space of a case, in GiB; with more it fails")->capture_default_str();
  app.add_option("--only", only, "cases, by the names the table gives them")->delimiter(',');
  try {
    app.parse(argc, argv);
    json out{{"limit", limit}, {"most_gib", most_gib}, {"cases", json::array()}, {"depth", json::array()}};
    std::printf("%-20s %9s %8s", "seconds of", "all", "cores");
    for (const char* stage : stage_names) std::printf(" %10s", stage);
    std::printf(" %9s  %13s\n", "peak MiB", "step");
    for (const searched& s : all_cases()) {
      if (!only.empty() && std::find(only.begin(), only.end(), s.label()) == only.end()) continue;
      const json found = searched_alone(s, limit, most_gib);
      print(s.label(), found);
      json entry{{"model", s.model},
                 {"axes", s.axes},
                 {"machine", s.nodes > 0 ? s.machine + " of " + std::to_string(s.nodes) + " nodes" : s.machine}};
      if (s.depth) entry["layers"] = s.layers, entry["folded"] = s.folded;
      entry.update(found);
      out[s.depth ? "depth" : "cases"].push_back(entry);
      if (!to.empty()) write_file(to, out.dump(1));
    }
  } catch (...) {
    return report<CLI::ParseError>(app);
  }
}
