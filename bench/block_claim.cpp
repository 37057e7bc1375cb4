// The claim everything rests on: that deciding per block loses nothing. The best plan over blocks against the best plan
// over operators, both exact for the same described costs, on layers of real models and on random graphs, under several
// balances of compute and communication, on one axis and on two. Prints how often they are equal and the largest gap.
#include "../tests/random_graph.hpp"
#include "carried.hpp"
#include "report.hpp"

#include <cfp/block/decisions.hpp>
#include <cfp/block/untied.hpp>
#include <cfp/families/families.hpp>
#include <cfp/file/new_file.hpp>
#include <cfp/model/differentiate.hpp>
#include <cfp/model/refine.hpp>
#include <cfp/profile/machine/roofline.hpp>

#include <chrono>
#include <cstring>
#include <random>

#include <unistd.h>

using namespace cfp;

namespace {

struct balance {
  const char* name;
  double flops, memory;
  std::vector<plain_links> links;
};

// Device and link rates from "communication is nearly free" to "communication decides".
std::vector<balance> balances() {
  std::vector<balance> out;
  const auto put = [&](const char* name, double flops, double memory, double first, double second) {
    out.push_back({name, flops, memory, {{1e-5, first}, {1e-5, second}}});
  };
  put("fast links", 1e14, 2e12, 4e11, 4e11);
  put("PCIe", 1e14, 1.5e12, 1.2e10, 1.2e10);
  put("fast axis, slow axis", 1e14, 2e12, 3e9, 2e11);
  put("slow links", 2e13, 1e12, 1e9, 1e9);
  return out;
}

struct outcome {
  bool solved = false;
  double blocks = 0, operators = 0;
  double gap() const { return blocks / operators - 1; }
};

outcome compare(const graph& g, const mesh_shape& mesh, const balance& b) {
  const machine m = plain_machine(mesh, b.flops, b.memory, 5e-6, b.links);
  const auto best = [&](const block_structure& s, bool& exact) {
    const decision_graph d = decisions(g, s, mesh);
    const solution a = solve(roofline(g, mesh, d, m).build());
    exact = a.feasible && a.optimal;
    return a.time;
  };
  outcome out;
  bool first = false, second = false;
  out.blocks = best(parallel_blocks(g), first);
  out.operators = best(untied(g), second);
  out.solved = first && second;
  return out;
}

mesh_shape mesh_of(std::initializer_list<int> sizes) {
  static constexpr const char* names[] = {"x", "y"};
  mesh_shape m;
  for (int s : sizes) m.axes.push({name(names[m.rank()]), s});
  return m;
}

// One layer of each model at a size people train.
graph layer_of(const std::string& name) {
  const families::config_file file(carried_model(name));
  families::model_sizes sizes;
  sizes.sequence = 512;
  sizes.layers =
      file.type({"gpt2", "llama", "mixtral", "gshard", "t5"}) == "gshard" ? 2 : 1;  // every other layer has experts
  return build_model(file, sizes).forward;
}

struct tally {
  std::string name;
  int cases = 0, equal = 0, unsolved = 0;
  double worst = 0;
  std::string where;

  void add(const outcome& o, const std::string& label) {
    if (!o.solved) {
      ++unsolved;
      return;
    }
    ++cases;
    equal += o.gap() <= 1e-9;
    if (o.gap() > worst) worst = o.gap(), where = label;
  }
  void print() const {
    std::printf("%-18s %6d %6d %9.2f%%  %s%s\n", name.c_str(), cases, equal, 100 * worst, where.c_str(),
                unsolved > 0 ? (" (" + std::to_string(unsolved) + " beyond the solver's budget)").c_str() : "");
    std::fflush(stdout);
  }
};

}  // namespace

int main(int argc, char** argv) try {
  const char* json = argc == 3 && std::strcmp(argv[1], "--json") == 0 ? argv[2] : nullptr;
  if (argc > 1 && json == nullptr) return std::fprintf(stderr, "block_claim: takes --json FILE\n"), 2;
  std::printf("%-18s %6s %6s %10s  %s\n", "model", "cases", "equal", "worst gap", "where");
  std::vector<tally> models;
  for (const char* name :
       {"gpt2", "alpa-gpt-6.7b", "llama-2-7b", "llama-3-8b", "mixtral-8x7b", "alpa-moe-2.4b", "t5-large"}) {
    const graph g = differentiate(refine(layer_of(name)));
    models.push_back({name, 0, 0, 0, 0, ""});
    for (const auto& [label, mesh] :
         {std::pair{"2", mesh_of({2})}, {"4", mesh_of({4})}, {"8", mesh_of({8})}, {"2x2", mesh_of({2, 2})}})
      for (const balance& b : balances())
        models.back().add(compare(g, mesh, b), std::string(label) + " ranks, " + b.name);
    models.back().print();
  }
  tally random{"random graphs", 0, 0, 0, 0, ""};
  std::mt19937 numbers(7);
  for (int n = 0; n < 1000; ++n) {
    const graph g = differentiate(refine(random_graph(numbers)));
    const auto all = balances();
    random.add(compare(g, n % 4 == 3 ? mesh_of({2, 2}) : mesh_of({4}), all[static_cast<std::size_t>(n) % all.size()]),
               "case " + std::to_string(n));
    if (isatty(2) && n % 10 == 0) std::fprintf(stderr, "\r%d of 1000", n);
  }
  if (isatty(2)) std::fprintf(stderr, "\r\033[K");
  random.print();
  if (json == nullptr) return 0;
  nlohmann::ordered_json out{{"cases", random.cases},
                             {"equal", random.equal},
                             {"worst_gap", random.worst},
                             {"models", nlohmann::ordered_json::array()}};
  for (const tally& t : models) {
    out["models"].push_back({{"name", t.name}, {"cases", t.cases}, {"equal", t.equal}, {"worst_gap", t.worst}});
    out["cases"] = static_cast<int>(out["cases"]) + t.cases;
    out["equal"] = static_cast<int>(out["equal"]) + t.equal;
    out["worst_gap"] = std::max(static_cast<double>(out["worst_gap"]), t.worst);
  }
  write_file(json, out.dump(1));
} catch (...) {
  return report();
}
