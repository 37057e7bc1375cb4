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
                              const held_axis& held = {}, bool may_recompute = false,
                              keeping::resting_t on_host = keeping::on_device) {
  const stage_timer deciding(options.clock, stage::strategies);
  return decisions(g.g, g.blocks, mesh, axis_choice::regathered, held, may_recompute ? &g.recomputed() : nullptr,
                   may_recompute ? on_host : keeping::on_device);
}

// How far weights may rest on the host, one thing after another.
inline std::vector<keeping::resting_t> rests_of(const machine& m, const machine_options& options) {
  if (!options.may_host || !(m.device.host_bandwidth > 0)) return {keeping::on_device};
  return {keeping::state_on_host, keeping::weights_on_host};
}

// Whether two meshes differ in the order of their two axes alone: in the other order each has the same links.
inline bool are_turned(const machine& m, const mesh_shape& a, const mesh_shape& b) {
  return a.rank() == 2 && b.rank() == 2 && a.size(0) == b.size(1) && a.size(1) == b.size(0) &&
         group_of(m, a, 0) == group_of(m, b, 1) && group_of(m, a, 1) == group_of(m, b, 0);
}

// Choices of the parts that do on each of two axes what they do on the other one in other decisions; others are open.
inline std::vector<int> turned(const decision_graph& from, const std::vector<int>& choices, const decision_graph& to) {
  std::vector<int> out(to.nodes.size(), -1);
  for (std::size_t n = 0; n < to.nodes.size(); ++n) {
    const decision &there = from.nodes[n], &here = to.nodes[n];
    if (here.kind != decision::strategy_of_part) continue;
    const auto chosen = static_cast<std::size_t>(choices[n]);
    strategy wanted = there.strategies[chosen];
    std::swap(wanted[0], wanted[1]);
    for (std::size_t c = 0; c < here.choices() && out[n] < 0; ++c)
      if (here.strategies[c] == wanted && (here.kept.empty() || here.kept[c] == there.kept[chosen]))
        out[n] = static_cast<int>(c);
  }
  return out;
}

// The plans of one mesh: those that keep all, and if these do not fit, or only slower ones, those that keep less.
class one_mesh {
 public:
  /// What it is given must outlive this.
  one_mesh(const planned_graph& g, const machine& m, const mesh_shape& mesh, const machine_options& options)
      : g_(g), machine_(m), options_(options), conversions_(m, mesh), out_{mesh, {}, {}} {}

  void keep_all() {
    if (options_.recompute == recomputing::all) return;
    machine_options how = options_;
    if (options_.recompute == recomputing::where_needed) how.limited_share /= 10;  // it is not all that may be chosen
    out_.decisions = decided(g_, out_.mesh, options_);
    out_.plans = search(how).compare();
  }

  /// `of_others`: milliseconds that the best plan on another mesh takes. `within`: beyond which nobody asks for a plan.
  void keep_less(double of_others = std::numeric_limits<double>::infinity(),
                 double within = std::numeric_limits<double>::infinity()) {
    if (options_.recompute == recomputing::none) return;
    if (options_.recompute != recomputing::all && (!out_.plans.limited || options_.over())) return;
    if (out_.plans.found() != nullptr && out_.plans.free_ms > options_.behind * of_others) return;
    if (out_.plans.fastest_ms() >= within) return;
    if (out_.plans.found() == nullptr) of_others = within;  // whether any fits is asked
    machine_options how = options_;
    if (within < std::numeric_limits<double>::infinity()) how.behind = 1 + how.unsure;
    const priced_plans kept = std::move(out_.plans);
    for (const keeping::resting_t on_host : rests_of(machine_, options_)) {
      out_.decisions = decided(g_, out_.mesh, options_, {}, true, on_host);
      kept_less_ = on_host;
      out_.plans = search(how, of_others).with_less_kept(kept, within);
      if (out_.plans.found() != nullptr || options_.over()) break;
    }
  }

  /// The plans of a mesh of which this one has the two axes the other way around, where links do not tell them apart.
  void take_turned(const one_mesh& other) {
    kept_less_ = other.kept_less_;
    out_.decisions =
        decided(g_, out_.mesh, options_, {}, kept_less_.has_value(), kept_less_.value_or(keeping::on_device));
    std::vector<std::vector<int>> begin;
    for (const evaluated& e : other.out_.plans.candidates)
      begin.push_back(turned(other.out_.decisions, e.p.choices, out_.decisions));
    out_.plans = search(options_).compare(other.out_.plans, begin);
  }

  /// Milliseconds of the fastest plan, whether it fits or not.
  double free_ms() const { return out_.plans.free_ms; }
  mesh_plans& plans() { return out_; }

 private:
  machine_search search(const machine_options& how, double of_others = std::numeric_limits<double>::infinity()) {
    return {g_.g, out_.mesh, out_.decisions, machine_, how, &g_.again, &conversions_, of_others};
  }

  const planned_graph& g_;
  const machine& machine_;
  const machine_options& options_;
  described_conversions conversions_;
  mesh_plans out_;
  std::optional<keeping::resting_t> kept_less_{};  // what decisions may leave on the host, if they may keep less
};

inline mesh_plans of_mesh(const planned_graph& g, const machine& m, const mesh_shape& mesh,
                          const machine_options& options) {
  one_mesh on(g, m, mesh, options);
  on.keep_all();
  on.keep_less();
  return std::move(on.plans());
}

}  // namespace detail

}  // namespace cfp
