// Plans for a machine that is described: see plan_for.hpp.
#pragma once

#include <cfp/core/bad_input.hpp>
#include <cfp/export/plan_file.hpp>
#include <cfp/export/plan_header.hpp>
#include <cfp/model/checked.hpp>
#include <cfp/model/differentiate.hpp>
#include <cfp/model/read_mesh.hpp>
#include <cfp/model/refine.hpp>
#include <cfp/plan/passes_search.hpp>
#include <cfp/profile/machine/described_times.hpp>
#include <cfp/profile/machine/machine_file.hpp>
#include <cfp/profile/machine/operator_time.hpp>
#include <cfp/program/stages/stage_mesh.hpp>
#include <cfp/session/curve.hpp>
#include <cfp/session/lines.hpp>
#include <cfp/session/measured_operators.hpp>
#include <cfp/session/plan_for.hpp>
#include <cfp/session/search_options.hpp>
#include <cfp/session/texts.hpp>
#include <cfp/session/unfit.hpp>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace cfp::inline v0_1 {

struct machine_plan::details {
  graph g;
  mesh_shape mesh;
  decision_graph decisions;
  cfp::machine on{};
  cost_graph sums{};                     ///< of parts
  std::vector<double> instruction_ms{};  ///< of the plan's program
  priced taken{};                        ///< what is said of the plan
};

namespace detail {

inline machine_plan::on_mesh priced_on(const mesh_plans& on) {
  machine_plan::on_mesh out{to_string(on.mesh), {}, on.plans.least, on.searched};
  const auto add = [&](const std::vector<evaluated>& some, const char* kind) {
    for (const evaluated& e : some) out.plans.push_back({e.p.name, kind, e.when.ms, e.peak, e.fits, e.gap});
  };
  add(on.plans.candidates, "found");
  add(on.plans.usual, "usual");
  add(on.plans.alpa, "alpa");
  return out;
}

inline std::vector<mesh_shape> meshes_to_search(const machine_plan_options& o, const machine& m) {
  if (o.axes < 1 || o.axes > 3) throw bad_input("axes must be 1 to 3, are " + std::to_string(o.axes));
  check_curve(o);
  product_rate(m.device, bytes_of(o.type));  // or it says what the machine's file lacks
  if (o.mesh.empty()) return meshes_of(m, o.axes);
  const mesh_shape one = read_mesh(o.mesh);
  if (has_stages(one))
    throw bad_input("mesh " + o.mesh + ": plans in stages choose their mesh (plan_in_stages, cfp plan --stages " +
                    std::to_string(one.size(0)) + "); leave it out");
  return {one};
}

inline machine_plan begun(const machine_plan_options& o, const machine& m, const training& how,
                          const std::string& times) {
  machine_plan out;
  out.model = o.name, out.trained = said_of(how, o.type);
  out.micro_batches = how.micro_batches;
  out.machine = m.name;
  out.devices = m.devices();
  out.type = name_of(o.type);
  out.optimizer = name_of(how.optimizer);
  out.times = times;
  out.kernels = o.unfused ? "every operator by itself" : "operators fused as kernels for GPUs compute them";
  out.memory_gib = static_cast<double>(o.memory > 0 ? o.memory : m.device.memory) / (1 << 30);
  return out;
}

// Takes one of the plans of a mesh.
inline void take(machine_plan& out, const evaluated& e, const graph& g, mesh_plans of, const machine& m,
                 const machine_options& options) {
  out.best = e.p;
  out.operators_ms = e.when.operators;
  out.exposed_ms = e.when.exposed;
  const auto is_folded = [](const operation& op) { return op.times > 1; };  // then its program is that of few layers
  if (std::none_of(g.operations.begin(), g.operations.end(), is_folded)) out.memory = split_of(out.best.code, g);
  out.lines = lines_of(out.best, g, of.decisions, of.plans.sums);
  std::vector<double> ms;
  described_times times(m, of.mesh, options.known);
  for (const instruction& i : out.best.code.code) ms.push_back(times(i, out.best.code, g));
  const machine_plan::priced taken{e.p.name, "found", e.when.ms, e.peak, e.fits, e.gap};
  out.of = std::make_shared<machine_plan::details>(
      machine_plan::details{g, of.mesh, std::move(of.decisions), m, std::move(of.plans.sums), std::move(ms), taken});
}

// The graphs to plan for, by the numbers of micro-batches. How they are trained but for that is `how`.
struct graphs_of_passes {
  std::vector<int> counts{};
  std::function<graph(int)> forward{};
};

inline graphs_of_passes by_passes(const forward_of_rows& model, long rows, int micro_batches) {
  if (rows < 1) throw bad_input("rows of a step must be 1 or more, are " + std::to_string(rows));
  if (micro_batches < 0)
    throw bad_input("micro_batches must be at least 1, or 0 for those that take least, is " +
                    std::to_string(micro_batches));
  if (micro_batches > 0 && rows % micro_batches != 0)
    throw bad_input(std::to_string(rows) + " rows of a step cannot be cut into " + std::to_string(micro_batches) +
                    " micro-batches of whole rows; take as many as divide them, or 0 for those that take least");
  graphs_of_passes out{{micro_batches}, [&model, rows](int n) { return model(rows / n); }};
  if (micro_batches == 0) out.counts = doubled_passes(rows);
  return out;
}

CFP_INLINE machine_plan plan_of(const graphs_of_passes& model, const machine& m, const machine_plan_options& o,
                                training how);

// With each of the optimizers; the fastest is taken.
CFP_INLINE machine_plan plan_with(const graphs_of_passes& model, const machine& m, const machine_plan_options& o);

}  // namespace detail

CFP_INLINE const machine_plan::priced* machine_plan::on_mesh::fastest(const std::string& kind) const {
  const priced* first = nullptr;
  for (const priced& p : plans)
    if (p.fits && (kind.empty() || p.kind == kind) && (first == nullptr || p.ms < first->ms)) first = &p;
  return first;
}

CFP_INLINE machine_plan detail::plan_of(const graphs_of_passes& model, const machine& m, const machine_plan_options& o,
                                        training how) {
  machine_options options = detail::search_options(o);
  checked_name(o.name);
  const bool by_table = !o.table.empty() || static_cast<bool>(o.measure_on.ms);
  if (by_table && (o.type != number::bfloat16 || o.unfused))
    throw bad_input("a table of operators is of the fused kernels in bfloat16; leave out the other type, and unfused");
  detail::measured_operators measured(o);
  if (o.tell && !o.tell({"making the training graph"})) throw cancelled();
  const auto in_passes = [&](int n) {
    const stage_timer differentiating(o.clock, stage::graph);
    return differentiate(refine(checked(model.forward(n))), checked(in_micro_batches(how, n)));
  };
  std::optional<graph> made = in_passes(model.counts.front());  // or it says what is wrong with the model
  const auto graph_in = [&](int n) { return made ? *std::exchange(made, std::nullopt) : in_passes(n); };
  options.known = measured.known();
  const std::vector<mesh_shape> meshes = detail::meshes_to_search(o, m);
  const bool chosen = model.counts.size() > 1;
  std::size_t begun = 0;
  const auto tell = [&](const std::string& what) {
    const double share = static_cast<double>(begun > 0 ? begun - 1 : 0) / static_cast<double>(meshes.size());
    if (o.tell && !o.tell({what, chosen ? -1 : share})) throw cancelled();
  };
  const auto begins = [&](int n, const mesh_shape& mesh) {
    ++begun;
    tell("planning for mesh " + to_string(mesh) + (chosen ? ", " + std::to_string(n) + " micro-batches" : ""));
  };
  if (options.known) options.known->tell = [&](const std::string& what) { tell("measuring " + what); };
  passes_plans all;
  mesh_points curve;
  try {
    all = search_passes(graph_in, model.counts, m, options, meshes, begins, o.within);
    const auto flat =
        std::find_if(all.plans.begin(), all.plans.end(), [](const mesh_plans& p) { return p.mesh.rank() < 3; });
    if (o.curve > 0 && flat != all.plans.end()) {
      tell("planning for other limits of memory");
      curve = mesh_curve(all.g, m, flat->mesh, options, o.curve);
    }
  } catch (const bad_input& e) {
    measured.keep();
    throw bad_input(std::string(e.what()) + "; take another mesh, or none");
  } catch (...) {  // what was measured is kept, however it ended
    measured.keep();
    throw;
  }
  measured.keep();
  machine_plan out = detail::begun(o, m, in_micro_batches(how, all.micro_batches), measured.words());
  for (const mesh_plans& on : all.plans) out.meshes.push_back(detail::priced_on(on));
  if (chosen)
    for (const auto& [n, ms] : all.of_each) out.passes.push_back({n, ms});
  if (o.curve > 0) out.curve = detail::not_beaten(out.meshes, curve);
  mesh_plans& first = all.plans.front();
  const evaluated* const found = first.plans.found();
  if (found == nullptr) {
    out.unfit = detail::unfit(out, m, o);
    return out;
  }
  if (!detail::splits(first.decisions) && first.mesh.devices() > 1)
    throw bad_input("mesh " + to_string(first.mesh) + " divides nothing of the model (" + o.name +
                    "); take another mesh");
  detail::take(out, *found, all.g, std::move(first), m, options);
  return out;
}

CFP_INLINE machine_plan detail::plan_with(const graphs_of_passes& model, const machine& m,
                                          const machine_plan_options& o) {
  training how = o.how;
  if (o.optimizers.empty()) return detail::plan_of(model, m, o, how);
  machine_plan best;
  std::vector<machine_plan::form> forms;
  for (auto form = o.optimizers.begin(); form != o.optimizers.end(); ++form)
    if (std::find(o.optimizers.begin(), form, *form) != form)
      throw bad_input("optimizer " + std::string(name_of(*form)) + " is there twice; name it once");
  for (const optimizer_form form : o.optimizers) {
    how.optimizer = form;
    machine_plan found = detail::plan_of(model, m, o, how);
    const auto* const fastest = found.fits() ? found.meshes.front().fastest() : nullptr;
    forms.push_back({found.optimizer, fastest != nullptr ? fastest->ms : 0, fastest != nullptr});
    if (forms.size() == 1 || (fastest != nullptr && (!best.fits() || fastest->ms < best.meshes.front().fastest()->ms)))
      best = std::move(found);
  }
  if (forms.size() > 1) best.forms = std::move(forms);
  return best;
}

CFP_INLINE machine_plan plan_for(const graph& forward, const machine& m, const machine_plan_options& o) {
  if (o.micro_batches == 0)
    throw bad_input("micro_batches must be 1 or more for a graph, which is of one; give the model by rows");
  return detail::plan_with({{o.micro_batches}, [&](int) { return forward; }}, m, o);
}

CFP_INLINE machine_plan plan_for(const forward_of_rows& model, long rows, const machine& m,
                                 const machine_plan_options& o) {
  return detail::plan_with(detail::by_passes(model, rows, o.micro_batches), m, o);
}

CFP_INLINE void machine_plan::save_plan(const std::string& path) const {
  if (!of) throw bad_input(unfit + "; there is none to save");
  detail::check_runs(of->g);
  write_file(path, to_json(best, of->g, of->mesh, of->decisions, model + trained).dump(1));
}

CFP_INLINE void machine_plan::save_header(const std::string& path) const {
  if (!of) throw bad_input(unfit + "; there is none to save");
  detail::check_runs(of->g);
  const block_structure blocks = parallel_blocks(of->g);
  const segmentation parts = segments(of->g, blocks);
  const segment_times shares(blocks, parts, of->decisions);
  write_file(path, plan_header(detail::header_space(path), model + trained, best, of->g, shares));
}

}  // namespace cfp
