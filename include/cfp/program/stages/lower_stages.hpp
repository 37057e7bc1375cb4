// Lowering for a pipeline: a training graph, a sharding of its stages and a schedule become one program for the ranks
// of each place along the stages. Its slots are unrolled, so that memory, order and prices follow from it as from any
// program.
#pragma once

#include <cfp/program/stages/stage_mesh.hpp>
#include <cfp/program/stages/stage_programs.hpp>
#include <cfp/program/stages/stages_lowerer.hpp>
#include <cfp/program/stages/sums_by_stage.hpp>
#include <cfp/program/target.hpp>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace cfp::inline v0_1 {

namespace detail {

// That a schedule computes what one device does, and nothing of the plan that stages cannot have yet.
inline void check_stages(const graph& g, const sharding& plan, const pipeline_schedule& s) {
  check(s);
  std::set<std::pair<int, int>> updated;
  for (int r = 0; r < s.count(); ++r)
    for (const slot& x : s.ranks[static_cast<std::size_t>(r)])
      if (x.kind == slot::update && !updated.insert({r, x.stage}).second)
        throw bad_input("schedule " + s.name + " updates stage " + std::to_string(x.stage) +
                        " several times: it is simulated, not run; the schedules that are run update once a step");
  if (g.passes != s.micro_batches)
    throw bad_input("schedule " + s.name + " is of " + std::to_string(s.micro_batches) +
                    " micro-batches, and the training graph of " + std::to_string(g.passes) +
                    ": training::micro_batches must be the schedule's");
  if (plan.assigned.size() != g.operations.size() || plan.materialised.size() != g.values.size())
    throw bad_input("the sharding is of " + std::to_string(plan.assigned.size()) + " operations and " +
                    std::to_string(plan.materialised.size()) + " tensors, and the training graph has " +
                    std::to_string(g.operations.size()) + " and " + std::to_string(g.values.size()) +
                    ": make it of the graph that is lowered");
  for (const assignment& a : plan.assigned)
    if (a.on_host || a.weight_on_host)
      throw bad_input("stages of a pipeline keep nothing in memory of the host so far");
}

}  // namespace detail

/// The programs of the stages of a pipeline, each on ranks of `of_stage`, a mesh that `plan` is of; `on` and `order` as
/// for one program. Throws bad_input for a schedule that is none, whose stages or micro-batches are not the layout's or
/// the graph's, or that does not compute what one device does.
inline stage_programs lower_stages(const graph& training, const mesh_shape& of_stage, const sharding& plan,
                                   const stage_layout& layout, const target& on = {}, const schedule& order = {}) {
  detail::check_stages(training, plan, layout.schedule);
  if (layout.schedule.stages != static_cast<int>(layout.first.size()) + 1)
    throw bad_input("schedule " + layout.schedule.name + " has " + std::to_string(layout.schedule.stages) +
                    " stages, and the model is cut into " + std::to_string(layout.first.size() + 1));
  stage_programs out{with_summed_loss(training), {}};
  sharding all = with_stages(plan);
  all.assigned.resize(out.g.operations.size());
  all.materialised.resize(out.g.values.size());
  add_up_by_stage(out.g, all, stage_operations(out.g, layout.first, layout.schedule.slices));
  const mesh_shape mesh = with_stages(of_stage, layout.schedule.count());
  out.along = detail::stages_lowerer(out.g, mesh, all, layout, on).run();
  for (program& p : out.along) on.complete(p, out.g, order);
  return out;
}

}  // namespace cfp
