// The fastest plan of a model in stages on a described machine: where it is cut, the mesh and the sharding inside, what
// is kept, how many micro-batches and which schedule, in one search.
#pragma once

#include <cfp/plan/mesh_search.hpp>
#include <cfp/plan/stages/one_layout.hpp>

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace cfp::inline v0_1 {

namespace detail {

// All layouts by sums of parts, and the nearest of them by programs.
class staged_search {
 public:
  staged_search(const graph_of_rows& model, long rows, const machine& m, const staged_options& options)
      : model_(model), rows_(rows), machine_(m), options_(options) {}

  std::optional<staged_plan> run() {
    for (int micro_batches = options_.most_micro_batches; micro_batches >= 2; --micro_batches)
      if (rows_ % micro_batches == 0) look_at(micro_batches);
    std::optional<staged_plan> best;
    const auto ms = [&] { return best ? best->price.ms : std::numeric_limits<double>::infinity(); };
    const auto take = [&](std::optional<staged_plan> found) {
      if (found) best = std::move(found);
    };
    for (candidate& c : candidates_)
      if (c.sums_ms < ms() * (1 + options_.machine.unsure)) {
        tell("programs of " + c.name);
        take(c.of->by_programs(ms()));
      }
    for (const int chunks : options_.chunks)
      for (candidate& c : candidates_)
        if (chunks > 1 && c.sums_ms < ms() * options_.machine.behind) {
          tell("programs of " + c.name + ", " + std::to_string(chunks) + " stages each");
          take(c.of->interleaved_in(chunks, ms()));
        }
    return best;
  }

 private:
  struct candidate {
    double sums_ms = 0;
    std::string name;
    std::unique_ptr<one_layout> of;
  };
  static constexpr std::size_t most = 6;  // candidates
  struct model_in {
    model_in(graph made, const target& on) : g(std::move(made)), planned(g, on) {}
    const graph g;
    const planned_graph planned;
  };

  void tell(const std::string& what) const {
    if (options_.tell) options_.tell(what);
  }
  bool allows(int places) const {
    const std::vector<int>& asked = options_.places;
    return machine_.devices() % places == 0 &&
           (asked.empty() || std::find(asked.begin(), asked.end(), places) != asked.end());
  }

  void look_at(int micro_batches) {
    const long rows = rows_ / micro_batches;
    models_.push_back(std::make_unique<model_in>(model_(rows, micro_batches), options_.machine.lowered_for));
    for (int places = 2; places <= std::min(machine_.devices(), micro_batches); ++places) {
      if (!allows(places)) continue;
      const machine inner = innermost(machine_, machine_.devices() / places);
      if (inner.devices() * places != machine_.devices()) continue;
      for (const mesh_shape& inside : meshes_of(inner, options_.axes)) {
        if (options_.machine.over()) return;
        const std::string name = std::to_string(places) + " places of " + sizes_text(inside) + ", " +
                                 std::to_string(micro_batches) + " micro-batches";
        tell(name);
        auto one = std::make_unique<one_layout>(model_, rows, micro_batches, models_.back()->planned, machine_, inside,
                                                places, options_);
        const double ms = one->by_sums(candidates_.size() < most ? std::numeric_limits<double>::infinity()
                                                                 : candidates_.back().sums_ms);
        if (ms < std::numeric_limits<double>::infinity()) keep({ms, name, std::move(one)});
      }
    }
  }
  void keep(candidate c) {
    const auto after = std::upper_bound(candidates_.begin(), candidates_.end(), c.sums_ms,
                                        [](double ms, const candidate& x) { return ms < x.sums_ms; });
    candidates_.insert(after, std::move(c));
    if (candidates_.size() > most) candidates_.pop_back();
  }

  const graph_of_rows& model_;
  const long rows_;
  const machine& machine_;
  const staged_options& options_;
  std::vector<std::unique_ptr<model_in>> models_;
  std::vector<candidate> candidates_;  // the fastest first
};

}  // namespace detail

/// The fastest plan of so many rows a step in two stages or more; nothing if none fits. Throws bad_input for no rows.
inline std::optional<staged_plan> search_stages(const graph_of_rows& model, long rows, const machine& m,
                                                const staged_options& options) {
  if (rows < 1) throw bad_input("a step has at least 1 row, not " + std::to_string(rows));
  return detail::staged_search(model, rows, m, options).run();
}

}  // namespace cfp
