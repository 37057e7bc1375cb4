// Plans in stages for a machine that is described: see plan_in_stages.hpp.
#pragma once

#include <cfp/model/checked.hpp>
#include <cfp/model/differentiate.hpp>
#include <cfp/model/refine.hpp>
#include <cfp/plan/stages/staged_search.hpp>
#include <cfp/plan/stages/usual_stages.hpp>
#include <cfp/profile/machine/operator_time.hpp>
#include <cfp/session/lines.hpp>
#include <cfp/session/plan_in_stages.hpp>
#include <cfp/session/print_stages.hpp>
#include <cfp/session/search_options.hpp>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace cfp::inline v0_1 {

namespace detail {

// What can be asked of plans without stages alone is refused.
inline staged_options stages_options(const machine_plan_options& o, const machine_pools& m, long rows,
                                     const std::vector<int>& places) {
  if (!o.mesh.empty()) throw bad_input("mesh " + o.mesh + ": stages choose the mesh inside them; leave it out");
  if (o.optimizers.size() > 1) throw bad_input("stages are planned for one optimizer; name one");
  if (o.curve > 0) throw bad_input("what memory is worth is not known of plans in stages so far");
  if (!o.table.empty() || o.measure_on.ms)
    throw bad_input("plans in stages are made from the machine's description so far; leave out the table");
  if (o.recompute == recomputing::all)
    throw bad_input("recompute all: plans in stages choose what is computed again; take where-needed or none");
  if (o.micro_batches < 0)
    throw bad_input("micro_batches must be 0, for those that take least, or more, is " +
                    std::to_string(o.micro_batches));
  for (const machine& pool : m.pools) product_rate(pool.device, bytes_of(o.type));  // or it says what its file lacks
  staged_options out;
  out.machine = search_options(o);
  out.machine.may_host = false;
  out.places = places;
  out.axes = o.axes;
  out.micro_batches = o.micro_batches > 1 ? o.micro_batches : 0;
  out.tell = [tell = o.tell](const std::string& what) {
    if (tell && !tell({what, -1})) throw cancelled();
  };
  check(out, rows, m);
  return out;
}

// Bytes of a device, of the pool that has fewest.
inline long least_memory(const machine_pools& m) {
  long out = m.pools.front().device.memory;
  for (const machine& pool : m.pools) out = std::min(out, pool.device.memory);
  return out;
}

// Why there is no plan in so many places, or any: a sentence.
inline std::string why_none(const graph_of_rows& model, long rows, const machine_pools& m, const staged_options& o) {
  int fewest = 0;
  for (int p = 2; p <= m.devices() && fewest == 0; ++p)
    if (m.devices() % p == 0 && (o.places.empty() || std::find(o.places.begin(), o.places.end(), p) != o.places.end()))
      fewest = p;
  const std::string stages = std::to_string(fewest) + " stages";
  if (fewest == 0) return "the machine has 1 device, and a pipeline 2 stages or more: take another machine";
  const int most = o.micro_batches > 0 ? o.micro_batches : static_cast<int>(std::min<long>(rows, o.most_micro_batches));
  if (most < fewest)
    return "a step of " + std::to_string(rows) + " rows has at most " + std::to_string(most) +
           " micro-batches here, and a pipeline of " + stages +
           " at least as many: take a larger batch, more "
           "micro-batches or fewer stages";
  const graph g = model(1, 2);
  const planned_graph planned(g, o.machine.lowered_for);
  if (const int found = stage_segments(g, segments(g, planned.blocks), planned.again).count(); found < fewest)
    return "the model can be cut into " + std::to_string(found) + " stages at most, and there must be " + stages +
           ": take fewer, or more layers";
  if (o.machine.over()) return "no plan in stages was found in the seconds given: give more of them";
  staged_options without = o;
  without.machine.memory = max_total_memory / 2;
  const std::optional<staged_plan> any = search_stages(model, rows, m, without);
  return "no plan in stages fits " + m.name() + " with " +
         bytes_text(o.machine.memory > 0 ? o.machine.memory : least_memory(m)) + " a device" +
         (any ? "; the fastest without a limit takes " + bytes_text(any->price.peak) : "") +
         ": take more memory, a smaller batch or more micro-batches, an optimizer of less state, or another machine";
}

inline std::vector<stages_plan::stage> stages_of(const staged_plan& p, const graph& g, const machine_pools& m) {
  std::vector<stages_plan::stage> out;
  for (std::size_t s = 0; s < p.ends.size(); ++s) {
    const operation& first = g.at(s > 0 ? p.layout.first[s - 1] : 0);
    const stage_cost& c = p.layout.costs[s];
    const int place = static_cast<int>(s) % p.layout.places;
    const std::string pool =
        m.pools.size() > 1 ? m.pools[static_cast<std::size_t>(p.layout.pools[static_cast<std::size_t>(place)])].name
                           : "";
    out.push_back({place, pool, std::string(g[first.results[0]].label.view()), c.forward,
                   c.backward_inputs + c.backward_weights, c.update});
  }
  return out;
}

// Those people use, in the layout that was found; the fastest of all that fit is taken.
inline void compare_usual(staged_plan& found, const graph_of_rows& model, const machine_pools& m,
                          const staged_options& o) {
  std::optional<usual_stages> all;
  try {
    all.emplace([&](int passes) { return model(found.rows, passes); }, found.layout, found.micro_batches, m, o.machine);
  } catch (const bad_input&) {  // fewer layers than stages
    return;
  }
  for (const named_plan& p : usual_inside(found.layout.inside, has_experts(model(found.rows, 1)))) {
    if (o.machine.over()) break;
    if (o.tell) o.tell("pricing " + p.name + " in such stages");
    if (auto usual = all->price(p)) found.usual.push_back(*std::move(usual));
  }
  const placed_pools places(m, found.layout.inside, found.layout.places, found.layout.pools);
  for (const staged_usual& u : found.usual)
    if (bytes_over(u.price, places, o.machine.memory) <= 0 && u.price.ms < found.price.ms) {
      found.layout = u.layout, found.ends = u.ends, found.choices = u.choices, found.plan = u.plan;
      found.price = u.price, found.sums_ms = found.bound_ms = 0;
    }
}

}  // namespace detail

CFP_INLINE std::optional<stages_plan> plan_in_stages(const forward_of_rows& model, long rows, const machine_pools& m,
                                                     const machine_plan_options& o, const std::vector<int>& places,
                                                     std::string* why_none) {
  const staged_options options = detail::stages_options(o, m, rows, places);
  const auto in_passes = [&](long some, int passes) {
    return differentiate(refine(checked(model(some))), checked(in_micro_batches(o.how, passes)));
  };
  std::optional<staged_plan> found = search_stages(in_passes, rows, m, options);
  if (!found && why_none != nullptr) *why_none = detail::why_none(in_passes, rows, m, options);
  if (!found) return std::nullopt;
  const bool ended_early = options.machine.over();
  detail::compare_usual(*found, in_passes, m, options);
  stages_plan out;
  out.model = o.name;
  out.machine = m.name();
  out.type = name_of(o.type);
  out.optimizer = name_of(o.how.optimizer);
  out.kernels = o.unfused ? "every operator by itself" : "operators fused as kernels for GPUs compute them";
  out.memory_gib = static_cast<double>(o.memory > 0 ? o.memory : detail::least_memory(m)) / (1 << 30);
  out.devices = m.devices();
  graph g = in_passes(found->rows, found->micro_batches);
  out.stages = detail::stages_of(*found, g, m);
  decision_graph d = [&] {
    const detail::planned_graph planned(g, options.machine.lowered_for);
    return detail::decided(planned, found->layout.inside, options.machine, {},
                           options.machine.recompute != recomputing::none);
  }();
  const cfp::plan whole = realise(o.name, g, found->layout.inside, d, found->choices, options.machine.lowered_for);
  out.lines = detail::lines_of(whole, g, d, {});
  const training how = in_micro_batches(o.how, found->micro_batches);
  out.of = std::make_shared<const stages_plan::details>(
      stages_plan::details{std::move(g), std::move(d), m, options.machine, detail::said_of(how, o.type)});
  out.ended_early = ended_early;
  out.plan = *std::move(found);
  return out;
}

}  // namespace cfp
