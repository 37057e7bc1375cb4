// In how many micro-batches a step's batch comes: more take less memory and more time, and so does computing again what
// fewer would keep.
#pragma once

#include <cfp/plan/mesh_search.hpp>

#include <functional>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

namespace cfp::inline v0_1 {

/// Plans on all meshes for one number of micro-batches.
struct passes_plans {
  int micro_batches = 1;
  graph g{};
  std::vector<mesh_plans> plans{};  ///< the fastest mesh first
  /// Of each number that was looked at, milliseconds of its fastest plan; infinite where none fits or is faster.
  std::vector<std::pair<int, double>> of_each{};
};

/// 1, 2, 4, ... micro-batches of whole rows.
inline std::vector<int> doubled_passes(long rows) {
  std::vector<int> out;
  for (int n = 1; rows % n == 0 && n <= 1 << 20; n *= 2) out.push_back(n);
  return out;
}

/// The fastest of all numbers of micro-batches. From few to many plans that keep all are looked for, up to the first
/// number whose fastest fits, for more only cut work into smaller pieces; then, from many to few, plans that keep less
/// and are faster than what is known by then; of many numbers as near the best as the options' `gap` says. `within`:
/// milliseconds beyond which nobody asks for a plan.
inline passes_plans search_passes(const std::function<graph(int)>& model, const std::vector<int>& counts,
                                  const machine& m, const machine_options& options,
                                  const std::vector<mesh_shape>& meshes,
                                  const std::function<void(int, const mesh_shape&)>& tell,
                                  double within = std::numeric_limits<double>::infinity()) {
  struct one {
    one(int n, graph made, const machine& on, const machine_options& how, const std::vector<mesh_shape>& all,
        const std::function<void(int, const mesh_shape&)>& hears)
        : passes(n), g(std::move(made)), search(g, on, how, all, [=](const mesh_shape& mesh) { hears(n, mesh); }) {}
    int passes;
    graph g;
    mesh_search search;
  };
  machine_options how = options;
  how.again = options.again && counts.size() == 1;
  std::vector<std::unique_ptr<one>> all;
  for (const int n : counts) {
    if (!all.empty() && (options.over() || all.back()->search.settled(within))) break;
    all.push_back(std::make_unique<one>(n, model(n), m, how, meshes, tell));
    all.back()->search.keep_all();
  }
  one* best = all.back().get();
  passes_plans out;
  for (auto x = all.rbegin(); x != all.rend(); ++x) {
    (*x)->search.keep_less(within);
    const double ms = (*x)->search.ms();
    if (ms < within) within = ms, best = x->get();
    out.of_each.insert(out.of_each.begin(), {(*x)->passes, ms});
  }
  out.micro_batches = best->passes;
  out.plans = best->search.plans();
  for (auto& [passes, ms] : out.of_each)
    if (passes == best->passes && !out.plans.empty()) ms = out.plans.front().ms();
  out.g = std::move(best->g);
  return out;
}

}  // namespace cfp
