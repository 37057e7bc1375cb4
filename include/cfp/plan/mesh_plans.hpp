// The plans of one mesh of a described machine.
#pragma once

#include <cfp/plan/machine_search.hpp>
#include <cfp/program/find_saved.hpp>

#include <limits>
#include <mutex>
#include <optional>
#include <string>

namespace cfp::inline v0_1 {

/// "2x4"
inline std::string sizes_text(const mesh_shape& mesh) {
  std::string out;
  for (int a = 0; a < mesh.rank(); ++a) out.append(a ? "x" : "").append(std::to_string(mesh.size(a)));
  return out;
}

/// The plans of one mesh.
struct mesh_plans {
  mesh_shape mesh;
  decision_graph decisions;  ///< that choices of its plans are among
  priced_plans plans;
  bool searched = true;  ///< false: time was up before
  double ms() const {
    return plans.found() != nullptr ? plans.found()->when.ms : std::numeric_limits<double>::infinity();
  }
};

namespace detail {

// A graph to plan, and what no mesh changes.
struct planned_graph {
  /// What it is lowered for says what may be recomputed.
  explicit planned_graph(const graph& whole, const target& on = 2)
      : g(whole), blocks(parallel_blocks(whole)), again(whole, blocks), on_(on) {}

  /// Found when it is first asked for; of any thread.
  const recomputation& recomputed() const {
    std::call_once(asked_, [&] { recomputed_.emplace(g, blocks, segments(g, blocks), find_saved(g, on_)); });
    return *recomputed_;
  }

  const graph& g;
  const block_structure blocks;
  const repeats again;

 private:
  const target on_;
  mutable std::once_flag asked_;
  mutable std::optional<recomputation> recomputed_;
};

inline decision_graph decided(const planned_graph& g, const mesh_shape& mesh, const machine_options& options,
                              const held_axis& held = {}, bool may_recompute = false, bool may_host = false) {
  const stage_timer deciding(options.clock, stage::strategies);
  return decisions(g.g, g.blocks, mesh, axis_choice::regathered, held, may_recompute ? &g.recomputed() : nullptr,
                   may_recompute && may_host);
}

inline mesh_plans of_mesh(const planned_graph& g, const machine& m, const mesh_shape& mesh,
                          const machine_options& options) {
  described_conversions conversions(m, mesh);
  mesh_plans out{mesh, {}, {}};
  if (options.recompute != recomputing::all) {
    out.decisions = decided(g, mesh, options);
    out.plans = machine_search(g.g, mesh, out.decisions, m, options, &g.again, &conversions).compare();
    if (options.recompute == recomputing::none || !out.plans.limited || options.over()) return out;
  }
  const bool may_host = options.may_host && m.device.host_bandwidth > 0;
  out.decisions = decided(g, mesh, options, {}, true, may_host);
  out.plans =
      machine_search(g.g, mesh, out.decisions, m, options, &g.again, &conversions).with_less_kept(std::move(out.plans));
  return out;
}

}  // namespace detail

}  // namespace cfp
