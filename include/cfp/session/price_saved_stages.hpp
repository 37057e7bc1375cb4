// A saved plan in stages, priced on a described machine.
#pragma once

#include <cfp/core/bad_input.hpp>
#include <cfp/session/plan_in_stages_implementation.hpp>
#include <cfp/session/price_saved.hpp>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace cfp::inline v0_1 {

namespace detail {

// Of each stage, the first segment that is not its.
inline std::vector<int> ends_of(const planned_graph& planned, const staged_layout& l, const std::string& where) {
  const stage_segments all(planned.g, segments(planned.g, planned.blocks), planned.again);
  std::vector<int> out;
  for (const int o : l.first) {
    const auto at = std::find(all.first.begin(), all.first.end(), o);
    if (at == all.first.end())
      throw bad_input(where + ": its stage " + std::to_string(out.size() + 1) +
                      " begins inside of a segment of the model, and only those that begin with one are priced");
    out.push_back(static_cast<int>(at - all.first.begin()));
  }
  out.push_back(all.count());
  return out;
}

}  // namespace detail

CFP_INLINE stages_plan price_saved_stages(const forward_of_rows& model, long rows, const machine& m,
                                          const std::string& path, const machine_plan_options& o) {
  const std::string where = "plan " + path, text = detail::text_of_plan(path);
  const plan_outline outline = outline_of_plan(text, where);
  if (!has_stages(outline.mesh)) throw bad_input(where + ": it is not in stages");
  if (rows < 1 || rows % outline.micro_batches != 0)
    throw bad_input(where + ": its " + std::to_string(outline.micro_batches) + " micro-batches do not divide " +
                    std::to_string(rows) + " rows");
  const long some = rows / outline.micro_batches;
  const auto in_passes = [&](int passes) {
    return differentiate(refine(checked(model(some))), checked(in_micro_batches(o.how, passes)));
  };
  stages_plan out;
  out.model = o.name, out.machine = m.name, out.devices = m.devices();
  out.type = name_of(o.type), out.optimizer = name_of(o.how.optimizer);
  out.kernels = o.unfused ? "every operator by itself" : "operators fused as kernels for GPUs compute them";
  out.memory_gib = static_cast<double>(o.memory > 0 ? o.memory : m.device.memory) / (1 << 30);
  machine_options options = detail::search_options(o);
  options.may_host = false;
  graph g = in_passes(outline.micro_batches);
  const mesh_shape inside = without_stages(outline.mesh);
  const std::string trained = detail::said_of(in_micro_batches(o.how, outline.micro_batches), o.type);
  decision_graph d;
  {
    const detail::planned_graph planned(g, options.lowered_for);
    d = detail::decided_as_saved(planned, inside, text, options);
    const saved_plan saved = read_plan(text, where, o.name + trained, g, outline.mesh, d);
    out.plan = {*saved.stages,         some,
                outline.micro_batches, detail::ends_of(planned, *saved.stages, where),
                saved.choices,         shard(g, d, saved.choices)};
  }
  const described_prices prices(m, outline.mesh);
  target on = options.lowered_for;
  on.prices = &prices;
  out.plan.price = price_of(in_passes, out.plan.plan, out.plan.layout, {m, nullptr}, on, outline.micro_batches);
  try {
    usual_stages usual(in_passes, out.plan.layout, outline.micro_batches, m, options);
    for (const named_plan& p : usual_inside(inside, has_experts(g)))
      if (auto priced = usual.price(p)) out.plan.usual.push_back(*std::move(priced));
  } catch (const bad_input&) {}  // fewer layers than stages
  out.stages = detail::stages_of(out.plan, g, m);
  out.lines = detail::lines_of(realise(o.name, g, inside, d, out.plan.choices, options.lowered_for), g, d, {});
  out.of = std::make_shared<const stages_plan::details>(
      stages_plan::details{std::move(g), std::move(d), m, options, trained});
  return out;
}

}  // namespace cfp
