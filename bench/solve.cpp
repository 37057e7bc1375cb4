// How long the exact solver takes: on one family of layered graphs without and with a memory limit, on ever more equal
// layers, and on cost graphs of real models; beside it CBC on the same tables. Or, with --in, any policy on a given
// cost graph.
#include "../tests/random_costs.hpp"
#include "carried.hpp"
#include "report.hpp"

#include <cfp/backend/threads.hpp>
#include <cfp/families/families.hpp>
#include <cfp/file/new_file.hpp>
#include <cfp/model/differentiate.hpp>
#include <cfp/model/refine.hpp>
#include <cfp/plan/search.hpp>
#include <cfp/profile/machine/roofline.hpp>
#include <cfp/solve/cost_file.hpp>
#include <cfp/solve/other/integer_program.hpp>
#include <cfp/solve/other/markov_chain.hpp>

#include <CLI/CLI.hpp>

#include <chrono>

using namespace cfp;
using json = nlohmann::ordered_json;

namespace {

struct timed {
  solution answer;
  double ms = 0;
};

/// The median of several runs; slow ones run once.
template <policy P>
timed run(const P& p, const cost_graph& g, const solve_options& options = {}, int times = 9) {
  timed out;
  std::vector<double> ms;
  double all = 0;
  for (int n = 0; n < times && all < 2000; ++n) {
    const auto begin = std::chrono::steady_clock::now();
    out.answer = p.solve(g, options);
    ms.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count());
    all += ms.back();
  }
  std::sort(ms.begin(), ms.end());
  out.ms = ms[ms.size() / 2];
  return out;
}

solve_options seconds(double s) {
  solve_options o;
  o.max_seconds = s;
  return o;
}

#ifdef CFP_HAS_CBC
// CBC beside the exact answer, as columns and as JSON.
void beside(const cost_graph& g, const solution& exact, double cbc_seconds, json& entry) {
  const timed cbc = run(integer_program_policy(), g, seconds(cbc_seconds), 1);
  entry["cbc_ms"] = cbc.ms;
  entry["cbc_optimal"] = cbc.answer.optimal;
  entry["cbc_gap"] = std::isfinite(cbc.answer.gap()) ? json(cbc.answer.gap()) : json();
  entry["equal"] =
      cbc.answer.optimal && exact.optimal && std::abs(cbc.answer.time - exact.time) <= 1e-6 * std::abs(exact.time);
  std::printf(" %10.1f  %s\n", cbc.ms,
              entry["equal"]       ? "equal"
              : cbc.answer.optimal ? "DIFFERENT"
                                   : "not proven in time");
  std::fflush(stdout);
}
#else
void beside(const cost_graph&, const solution&, double, json&) { std::printf("          -\n"); }
#endif

json family(double cbc_seconds) {
  json out = json::array();
  std::printf("32 layers, all different, no limit\n%8s %6s %10s %10s\n", "choices", "nodes", "exact ms", "CBC ms");
  for (const int choices : {4, 9, 16}) {
    const cost_graph g = layered_costs(32, choices, 1);
    const timed exact = run(exact_policy(), g);
    std::printf("%8d %6zu %10.2f", choices, g.nodes.size(), exact.ms);
    json entry{{"layers", 32}, {"choices", choices}, {"exact_ms", exact.ms}};
    beside(g, exact.answer, cbc_seconds, entry);
    out.push_back(entry);
  }
  return out;
}

json memory(int seeds, int cbc_seeds, double limit_seconds) {
  json out = json::array();
  std::printf(
      "\n32 layers, 9 choices, %d seeds, limit between the least memory and that of the fastest plan, %g s each\n",
      seeds, limit_seconds);
  std::printf("%6s %10s %12s %8s %10s  CBC, %d seeds\n", "limit", "median ms", "times free", "proven", "worst gap",
              cbc_seeds);
  for (const int percent : {25, 50, 75}) {
    std::vector<double> ms, ratio, cbc_ms;
    double worst = 0, cbc_worst = 0;
    int proven = 0, cbc_proven = 0;
    for (int seed = 1; seed <= seeds; ++seed) {
      cost_graph g = layered_costs(32, 9, static_cast<unsigned>(seed));
      const timed free = run(exact_policy(), g, {}, 3);
      g.memory_limit = 0;
      const std::int64_t least = *solve(g).least_memory;
      g.memory_limit = least + (free.answer.memory - least) * percent / 100;
      const timed exact = run(exact_policy(), g, seconds(limit_seconds), 3);
      ms.push_back(exact.ms);
      ratio.push_back(exact.ms / free.ms);
      proven += exact.answer.optimal;
      worst = std::max(worst, exact.answer.gap());
      json entry{{"percent", percent},
                 {"seed", seed},
                 {"free_ms", free.ms},
                 {"exact_ms", exact.ms},
                 {"optimal", exact.answer.optimal},
                 {"gap", exact.answer.gap()}};
#ifdef CFP_HAS_CBC
      if (seed <= cbc_seeds) {
        const timed cbc = run(integer_program_policy(), g, seconds(limit_seconds), 1);
        cbc_ms.push_back(cbc.ms);
        cbc_proven += cbc.answer.optimal;
        cbc_worst = std::max(cbc_worst, cbc.answer.gap());
        entry["cbc_ms"] = cbc.ms;
        entry["cbc_optimal"] = cbc.answer.optimal;
        entry["cbc_gap"] = std::isfinite(cbc.answer.gap()) ? json(cbc.answer.gap()) : json();
        if (cbc.answer.feasible) entry["cbc_time_over_exact"] = cbc.answer.time / exact.answer.time;
      }
#endif
      out.push_back(entry);
    }
    std::printf("%5d%% %10.1f %12.1f %5d/%-2d %9.4f%%  median %.0f ms, %d/%zu proven, worst gap %.2f%%\n", percent,
                median(ms), median(ratio), proven, seeds, 100 * worst, median(cbc_ms), cbc_proven, cbc_ms.size(),
                100 * cbc_worst);
    std::fflush(stdout);
  }
  return out;
}

json repeat() {
  json out = json::array();
  std::printf("\nequal layers, 9 choices\n%8s %10s\n", "layers", "exact ms");
  for (const int layers : {100, 1000, 10000}) {
    const timed exact = run(exact_policy(), layered_costs(layers, 9, 1, true), {}, 3);
    std::printf("%8d %10.2f\n", layers, exact.ms);
    std::fflush(stdout);
    out.push_back({{"layers", layers}, {"exact_ms", exact.ms}, {"optimal", exact.answer.optimal}});
  }
  return out;
}

json growth() {
  json out = json::array();
  std::printf("\ngrowth with depth, ms\n%8s %8s %12s %12s\n", "choices", "layers", "different", "equal");
  for (const int choices : {4, 9, 16})
    for (const int layers : {10, 32, 100, 316, 1000}) {
      const timed different = run(exact_policy(), layered_costs(layers, choices, 1), {}, 5),
                  equal = run(exact_policy(), layered_costs(layers, choices, 1, true), {}, 5);
      std::printf("%8d %8d %12.2f %12.2f\n", choices, layers, different.ms, equal.ms);
      std::fflush(stdout);
      out.push_back({{"choices", choices}, {"layers", layers}, {"different_ms", different.ms}, {"equal_ms", equal.ms}});
    }
  return out;
}

json models(double cbc_seconds) {
  json out = json::array();
  std::printf("\nmodels on described machines, no limit\n%-16s %5s %6s %6s %8s %10s %10s\n", "model", "mesh", "nodes",
              "edges", "choices", "exact ms", "CBC ms");
  for (const char* name : {"gpt2", "llama-3-8b", "mixtral-8x7b", "t5-large"}) {
    const families::config_file file(carried_model(name));
    const graph g =
        differentiate(refine(build_model(file, {4, std::string_view(name).starts_with("t5") ? 32l : 128l}).forward));
    for (const bool two : {false, true}) {
      mesh_shape mesh;
      mesh.axes.push({cfp::name("x"), 4});
      if (two) mesh.axes.push({cfp::name("y"), 2});
      const decision_graph d = decisions(g, parallel_blocks(g), mesh);
      const cost_graph costs = roofline(g, mesh, d, plain_machine(mesh)).build();
      std::size_t choices = 0;
      for (const cost_node& n : costs.nodes) choices = std::max(choices, n.time.size());
      const timed exact = run(exact_policy(), costs, seconds(60), 3);
      std::printf("%-16s %5s %6zu %6zu %8zu %10.2f", name, two ? "4x2" : "4", costs.nodes.size(), costs.edges.size(),
                  choices, exact.ms);
      json entry{{"model", name},
                 {"mesh", two ? "4x2" : "4"},
                 {"nodes", costs.nodes.size()},
                 {"edges", costs.edges.size()},
                 {"most_choices", choices},
                 {"exact_ms", exact.ms},
                 {"optimal", exact.answer.optimal}};
      if (two) std::printf("          -\n");  // tables of 10^5 entries each: hours
      else beside(costs, exact.answer, cbc_seconds, entry);
      std::fflush(stdout);
      out.push_back(entry);
    }
  }
  return out;
}

// Planning gpt2 on two ranks of this machine, everything measured or only what is needed, each from nothing.
json lazy(long layers) {
  families::transformer c = families::read_decoder(families::config_file(carried_model("gpt2")));
  c.layers = layers;
  c.batch = 4;
  c.sequence = 32;
  const graph g = differentiate(refine(families::decoder(c)));
  const block_structure blocks = parallel_blocks(g);
  const segmentation parts = segments(g, blocks);
  mesh_shape mesh;
  mesh.axes.push({cfp::name("data"), 2});
  const decision_graph d = decisions(g, blocks, mesh);
  const segment_times whole(blocks, parts, d);
  const std::unique_ptr<backend> ranks = threads(mesh);

  struct planned {
    profile_table table;
    cost_graph costs;
    std::vector<int> choices;
    profiler::knowledge known;
    double seconds = 0;
  };
  const auto plan_it = [&](bool lazily, const profile_table* replay, double tolerance = 0) {
    planned out;
    const auto begin = std::chrono::steady_clock::now();
    profiler p(g, d, *ranks, out.table);
    p.replay = replay;
    if (lazily) p.be_lazy(tolerance);
    if (!lazily) out.costs = p.build();
    if (replay) {  // without segments run whole
      out.choices = solve_lazily(
                        tolerance, [&] { return p.costs_so_far(); },
                        [&](const std::vector<int>& plan, const excess_wanted& excess) { return p.ask(plan, excess); })
                        .choices;
    } else {
      plan_search search(g, mesh, d, whole, p);
      search.tolerance = tolerance;
      out.choices = search.run({}).front().choices;
      out.costs = search.costs();
    }
    out.known = p.known();
    out.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return out;
  };
  const planned full = plan_it(false, nullptr);
  const double best = solve(full.costs).time;
  json out{{"layers", layers}, {"full_seconds", full.seconds}, {"lazy", json::array()}};
  std::printf("\ngpt2, %ld layers on two ranks: everything measured in %.1f s\n%-10s %18s %12s %16s   %s\n", layers,
              full.seconds, "tolerance", "figures", "below bound", "time", "from the full profile's figures");
  for (const double tolerance : {0.0, 0.02}) {
    const planned some = plan_it(true, nullptr, tolerance), same = plan_it(true, &full.table, tolerance);
    const double same_time = evaluate(full.costs, same.choices).time;
    const auto fraction = [](const planned& p) { return static_cast<double>(p.known.measured) / p.known.of; };
    out["lazy"].push_back({{"tolerance", tolerance},
                           {"figures", some.known.of},
                           {"measured", some.known.measured},
                           {"below_bound", some.known.below_bound},
                           {"measured_fraction", fraction(some)},
                           {"seconds", some.seconds},
                           {"time_ratio", some.seconds / full.seconds},
                           {"replayed_fraction", fraction(same)},
                           {"replayed_over_best", same_time / best}});
    std::printf("%8.0f%% %9d of %4d %13d %7.1f s (%2.0f%%)   %d of %d, plan %.2f%% slower than the best\n",
                100 * tolerance, some.known.measured, some.known.of, some.known.below_bound, some.seconds,
                100 * some.seconds / full.seconds, same.known.measured, same.known.of, 100 * (same_time / best - 1));
    std::fflush(stdout);
  }
  return out;
}

json answer_of(std::string_view name, const timed& t) {
  const auto finite = [](double x) { return std::isfinite(x) ? json(x) : json(); };
  return {{"policy", name},
          {"time", finite(t.answer.time)},
          {"memory", t.answer.memory},
          {"choices", t.answer.choices},
          {"seconds", t.ms / 1000},
          {"optimal", t.answer.optimal},
          {"gap", finite(t.answer.gap())}};
}

int given(const std::string& in, const std::string& by, const solve_options& options, const std::string& to) {
  std::ifstream file(in);
  if (!file) return std::fprintf(stderr, "solve: %s cannot be read\n", in.c_str()), 2;
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  json out;
  const auto use = [&](const auto& p) {
    if (p.name != by) return;
    out = answer_of(p.name, run(p, read_costs(text, in), options, 1));
  };
  use(exact_policy());
  use(exhaustive_policy());
  use(greedy_policy());
  use(markov_chain_policy());
#ifdef CFP_HAS_CBC
  use(integer_program_policy());
#endif
  if (out.is_null())
    return std::fprintf(stderr,
                        "solve: there is no policy '%s' here: exact, exhaustive, greedy, mcmc, and ilp where CBC is "
                        "installed (coinor-libcbc-dev)\n",
                        by.c_str()),
           2;
  if (to.empty()) std::printf("%s\n", out.dump(1).c_str());
  else write_file(to, out.dump(1));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("How long the exact solver takes", "solve");
  std::string to, in, by = "exact", only;
  double cbc_seconds = 60, limit_seconds = 10;
  int seeds = 20, cbc_seeds = 3;
  long layers = 2;
  app.add_option("--json", to, "write the figures here");
  app.add_option("--in", in, "solve this cost graph instead");
  app.add_option("--policy", by, "by exact, exhaustive, greedy, mcmc or ilp");
  app.add_option("--seconds", limit_seconds, "most a solver may take, with a memory limit or on a given graph");
  app.add_option("--cbc-seconds", cbc_seconds, "most CBC may take without a limit");
  app.add_option("--seeds", seeds, "graphs with a memory limit");
  app.add_option("--cbc-seeds", cbc_seeds, "of these, also given to CBC");
  app.add_option("--only", only, "measure this part alone")
      ->check(CLI::IsMember({"family", "memory", "repeat", "growth", "models", "lazy"}));
  app.add_option("--layers", layers, "of the model that is measured lazily");
  try {
    app.parse(argc, argv);
    if (!in.empty()) return given(in, by, seconds(limit_seconds), to);
    json out;
    const auto part = [&](const char* label, const auto& measured) {
      if (only.empty() || only == label) out[label] = measured();
    };
    part("family", [&] { return family(cbc_seconds); });
    part("memory", [&] { return memory(seeds, cbc_seeds, limit_seconds); });
    part("repeat", repeat);
    part("growth", growth);
    part("models", [&] { return models(cbc_seconds); });
    part("lazy", [&] { return lazy(layers); });
    if (!to.empty()) write_file(to, out.dump(1));
  } catch (...) {
    return report<CLI::ParseError>(app);
  }
}
