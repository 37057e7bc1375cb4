// faults COUNT [SEED]: so many trainings, in each of which one fault happens at a random moment; each must end in time
// and say which rank it was, leave files that are the old or the new ones, and go on from them as if nothing had
// happened. Exit code 1 where one does not: what it left is kept, and `faults 1 SEED` repeats it.
#include "moment.hpp"
#include "processes.hpp"
#include "training.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <set>
#include <sstream>

namespace faults {

namespace {

namespace fs = std::filesystem;

constexpr double deadline = 3, grace = 2;  // seconds: of ranks that wait; until all is written and all have gone

struct world {
  std::string name, mesh;
  int ranks, share;  // share: how often, of the sum
};
const std::vector<world> worlds {
  {"threads", "data=2", 2, 3}, {"threads", "data=2,model=2", 4, 2},
#if defined(CFP_FAULTS_MPI)
      {"mpi", "data=2", 2, 3},
#endif
#if defined(CFP_FAULTS_GPUS)
      {"gpus", "data=2", 2, 3},
#endif
};

// What a training that nothing happens to leaves.
struct unbroken {
  std::vector<std::string> curve;   // a line per step
  std::vector<std::string> states;  // the file after each; before the first there is none
  std::string plan;
  std::vector<std::array<std::array<long, kinds.size()>, 8>> moments;  // passed before each step, and at the end
};

std::string path_of_this() { return fs::read_symlink("/proc/self/exe").string(); }

std::vector<ended_process> run(const world& w, const std::string& folder, const fault& f, bool keep_all = false) {
  std::vector<std::string> command{path_of_this(),
                                   "train",
                                   w.name,
                                   w.mesh,
                                   folder,
                                   (fs::path(folder).parent_path() / (w.name + w.mesh + ".plan")).string(),
                                   keep_all ? "1" : "0"};
  for (const int n : {static_cast<int>(f.what), static_cast<int>(f.kind), f.rank}) command.push_back(std::to_string(n));
  command.push_back(std::to_string(f.at));
  std::vector<std::map<std::string, std::string>> processes(1);
#if defined(CFP_FAULTS_MPI)
  if (w.name == "mpi") {
    command.insert(command.begin(), {CFP_FAULTS_MPI, "-n", std::to_string(w.ranks)});
    processes[0] = {{"OMPI_ALLOW_RUN_AS_ROOT", "1"},
                    {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
                    {"OMPI_MCA_rmaps_base_oversubscribe", "1"}};
  }
#endif
  if (w.name == "gpus") {
    processes.clear();
    static std::mt19937 random{std::random_device{}()};
    const std::string port = std::to_string(20000 + random() % 12000), mapped = folder + ".nccl";
    fs::remove_all(mapped);
    fs::create_directories(mapped);
    for (int r = 0; r < w.ranks; ++r)
      processes.push_back({{"RANK", std::to_string(r)},
                           {"LOCAL_RANK", std::to_string(r)},
                           {"WORLD_SIZE", std::to_string(w.ranks)},
                           {"LOCAL_WORLD_SIZE", std::to_string(w.ranks)},
                           {"MASTER_ADDR", "127.0.0.1"},
                           {"MASTER_PORT", port},
                           {"CFP_STAND_IN_FOLDER", mapped}});
  }
  return run_processes(command, processes, folder, 60);
}

std::vector<std::string> lines_of(const std::vector<ended_process>& all, const std::string& begin) {
  std::vector<std::string> out;
  for (const ended_process& p : all) {
    std::istringstream in(p.words);
    for (std::string line; std::getline(in, line);)
      if (line.starts_with(begin)) out.push_back(line);
  }
  return out;
}

std::string words_of(const std::vector<ended_process>& all) {
  std::string out;
  for (std::size_t p = 0; p < all.size(); ++p)
    out += "process " + std::to_string(p) + " ended with " + std::to_string(all[p].code) +
           (all[p].hung ? ", killed as it hung" : "") + ":\n" + all[p].words;
  return out;
}

double time_in(const std::string& line) { return std::stod(line.substr(line.find(" at ") + 4)); }

struct failed : std::runtime_error {
  using std::runtime_error::runtime_error;
};
void must(bool holds, const std::string& why) {
  if (!holds) throw failed(why);
}

unbroken reference(const world& w, const std::string& folder) {
  fs::create_directories(folder);
  const std::vector<ended_process> all = run(w, folder, {}, true);
  for (const ended_process& p : all) must(p.code == 0, "without a fault:\n" + words_of(all));
  unbroken out;
  out.curve = lines_of(all, "step ");
  must(out.curve.size() == static_cast<std::size_t>(steps), "without a fault:\n" + words_of(all));
  out.moments.resize(1);
  for (long s = 1; s <= steps; ++s) {
    out.states.push_back(content(folder + "/state." + std::to_string(s)));
    out.moments.push_back(out.moments.back());
  }
  out.plan = content(folder + "/plan");
  std::map<std::pair<long, long>, std::size_t> seen;  // a process says it after each step
  for (const std::string& line : lines_of(all, "moments ")) {
    std::istringstream in(line.substr(8));
    long r = 0, k = 0, n = 0;
    in >> r >> k >> n;
    out.moments[++seen[{r, k}]][static_cast<std::size_t>(r)][static_cast<std::size_t>(k)] = n;
  }
  return out;
}

fault random_fault(const world& w, const unbroken& whole, std::mt19937& random) {
  const auto below = [&](long n) { return static_cast<long>(random() % static_cast<unsigned long>(n)); };
  fault f;
  f.deadline = deadline;
  f.is_thread = w.name == "threads";
  const long which = below(20);  // few stop: that takes long
  f.what = which < 6    ? what::raise
           : which < 12 ? what::kill
           : which < 14 ? what::stop
           : which < 17 ? what::full
                        : what::brief;
  for (;;) {
    f.kind = static_cast<kind>(f.what == what::raise ? below(2) : below(3));
    if (f.what == what::full || f.what == what::brief) f.kind = kind::write;
    f.rank = f.kind == kind::write ? 0 : static_cast<int>(below(w.ranks));
    const auto step = static_cast<std::size_t>(below(steps));
    const auto passed = [&](std::size_t s) {
      return whole.moments[s][static_cast<std::size_t>(f.rank)][static_cast<std::size_t>(f.kind)];
    };
    const long more =
        passed(step + 1) - passed(step);  // none: of a recorded step collectives are no moments of their own
    f.at = passed(step) + (more > 0 ? below(more) : 0);
    if (more > 0) break;
  }
  return f;
}

// How they ended, and what they said.
void check_end(const world& w, const fault& f, const std::vector<ended_process>& all) {
  const bool alone = f.is_thread && f.kind == kind::write;  // nobody waits for who writes
  const std::string rank = "rank " + std::to_string(f.rank);
  for (std::size_t p = 0; p < all.size(); ++p) {
    must(!all[p].hung, "it hangs");
    const bool is_victim = w.name == "gpus" && static_cast<int>(p) == f.rank;
    const auto must_say = [&](const std::string& words, int code) {
      must(all[p].code == code && all[p].words.find(words) != std::string::npos,
           "a process must end with " + std::to_string(code) + " and say '" + words + "'");
    };
    switch (f.what) {
      case what::none: break;
      case what::raise: must_say(rank + " failed: told to fail", 1); break;
      case what::kill:
        if (w.name == "threads" || is_victim) must(all[p].code == 137, "it must be killed");
        else must_say(rank, w.name == "mpi" ? 137 : 1);
        break;
      case what::stop:
        if (alone) must(all[p].code == 0, "it must go on");
        else must_say(rank, 1);
        break;
      case what::full: must_say(": cannot be ", 2); break;
      case what::brief: must(all[p].code == 0, "what is written in two pieces is written"); break;
    }
  }
}

// When: survivors within the deadline, who stopped when it is awake again.
double check_time(const fault& f, const std::vector<ended_process>& all, double end) {
  const std::vector<std::string> at = lines_of(all, "fault at ");
  must(at.size() == 1, "the fault must happen once");
  double last = 0;
  for (const std::string& line : lines_of(all, "ended at ")) last = std::max(last, time_in(line) - time_in(at[0]));
  const double asleep = f.what == what::stop ? asleep_for * deadline : 0;
  must(last <= asleep + deadline + grace && end - time_in(at[0]) <= asleep + deadline + grace,
       "it takes " + std::to_string(end - time_in(at[0])) + " s");
  return end - time_in(at[0]);
}

// Files are those of before or after a step, nothing else is there; and training goes on from them.
void check_files(const world& w, const fault& f, const unbroken& whole, const std::string& folder,
                 std::size_t printed) {
  const std::string state = content(folder + "/state"), plan = content(folder + "/plan");
  std::size_t kept = 0;
  if (fs::exists(folder + "/state")) {
    const auto at = std::find(whole.states.begin(), whole.states.end(), state);
    must(at != whole.states.end(), "the state is that of no step");
    kept = static_cast<std::size_t>(at - whole.states.begin()) + 1;
  }
  must(kept == printed || kept + 1 == printed,
       "step " + std::to_string(printed) + " was told of, the state is of " + std::to_string(kept));
  if (fs::exists(folder + "/plan")) must(plan == whole.plan, "the plan is another one");
  else must(printed <= 1, "there is no plan any more");
  if (f.what != what::kill && f.what != what::stop)
    for (const auto& file : fs::directory_iterator(folder))
      must(!file.path().string().ends_with(".new"), "half of a file is left");
  const std::vector<ended_process> all = run(w, folder, {});
  for (const ended_process& p : all) must(p.code == 0, "it does not go on:\n" + words_of(all));
  const std::vector<std::string> rest(whole.curve.begin() + static_cast<long>(kept), whole.curve.end());
  must(lines_of(all, "step ") == rest, "it goes on otherwise:\n" + words_of(all));
  must(content(folder + "/state") == whole.states.back(), "it comes to another state");
  for (const auto& file : fs::directory_iterator(folder))  // unless nothing was written any more
    must(rest.empty() || !file.path().string().ends_with(".new"), "half of a file is left for good");
}

struct line_of_table {
  int runs = 0;
  double longest = 0;
};

// One run; false where something is wrong, which is printed.
bool one(unsigned seed, const std::string& folder, std::map<std::string, unbroken>& known,
         std::map<std::string, line_of_table>& table) {
  std::mt19937 random(seed);
  int shares = 0;
  for (const world& w : worlds) shares += w.share;
  auto pick = static_cast<int>(random() % static_cast<unsigned>(shares));
  const world& w = *std::find_if(worlds.begin(), worlds.end(), [&](const world& x) { return (pick -= x.share) < 0; });
  const std::string in = folder + "/" + std::to_string(seed), name = w.name + " " + w.mesh;
  std::vector<ended_process> all;
  fault f;
  try {
    if (!known.contains(name)) known[name] = reference(w, folder + "/" + w.name + w.mesh);
    f = random_fault(w, known[name], random);
    fs::create_directories(in);
    all = run(w, in, f);
    const double end = now();
    check_end(w, f, all);
    line_of_table& line = table[w.name + " " + whats[static_cast<std::size_t>(f.what)]];
    line.longest = std::max(line.longest, check_time(f, all, end));
    check_files(w, f, known[name], in, lines_of(all, "step ").size());
    ++line.runs;
    fs::remove_all(in);
    return true;
  } catch (const failed& e) {
    std::printf("seed %u, %s, %s: %s\n%s\n", seed, name.c_str(), f.text().c_str(), e.what(), words_of(all).c_str());
    return false;
  }
}

int many(int count, unsigned seed) {
  const std::string folder = (fs::temp_directory_path() / ("cfp_faults_" + std::to_string(getpid()))).string();
  fs::create_directories(folder);
  std::map<std::string, unbroken> known;
  std::map<std::string, line_of_table> table;
  int wrong = 0;
  for (int i = 0; i < count; ++i) {
    wrong += !one(seed + static_cast<unsigned>(i), folder, known, table);
    if (isatty(2) != 0) std::fprintf(stderr, "\r%d of %d, %d wrong ", i + 1, count, wrong);
  }
  std::printf("%-16s %6s %s\n", "world, fault", "runs", "longest from the fault to the end of all, s");
  for (const auto& [name, line] : table) std::printf("%-16s %6d %.2f\n", name.c_str(), line.runs, line.longest);
  std::printf("%d faults, %d wrong\n", count, wrong);
  if (wrong == 0) fs::remove_all(folder);
  else std::printf("what they left is in %s\n", folder.c_str());
  return wrong == 0 ? 0 : 1;
}

}  // namespace

}  // namespace faults

int main(int argc, char** argv) {
  using namespace faults;
  if (argc == 11 && std::string(argv[1]) == "train") {
    planned = {static_cast<what>(std::atoi(argv[7])),
               static_cast<kind>(std::atoi(argv[8])),
               std::atoi(argv[9]),
               std::atol(argv[10]),
               deadline,
               std::string(argv[2]) == "threads",
               std::string(argv[4]) + "/"};
    return train({argv[2], argv[3], argv[4], argv[5], std::string(argv[6]) == "1"});
  }
  if (argc == 4 && std::string(argv[1]) == "end_apart") return end_apart(argv[2], std::atoi(argv[3]));
  const int count = argc > 1 ? std::atoi(argv[1]) : 0;
  if (count < 1) return std::fprintf(stderr, "usage: faults COUNT [SEED]\n"), 2;
  return many(count, argc > 2 ? static_cast<unsigned>(std::strtoul(argv[2], nullptr, 10)) : 1);
}
