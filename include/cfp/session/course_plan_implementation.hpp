// Plans for conditions that change: see course_plan.hpp.
#pragma once

#include <cfp/core/bad_input.hpp>
#include <cfp/session/course_plan.hpp>
#include <cfp/session/price_saved.hpp>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace cfp::inline v0_1 {

namespace detail {

/// The choices of a plan by name, among the decisions of the same model for other sizes; nothing where one is not
/// there.
inline std::optional<std::vector<int>> choices_like(const machine_plan& p, const graph& g, const decision_graph& d) {
  const plan_names was(p.of->g, p.of->decisions), now(g, d);
  if (was.decisions() != now.decisions()) return std::nullopt;
  std::vector<int> out;
  for (std::size_t n = 0; n < d.nodes.size(); ++n) {
    const std::string want = was.choices(n)[static_cast<std::size_t>(p.best.choices[n])];
    const std::vector<std::string> all = now.choices(n);
    const auto at = std::find(all.begin(), all.end(), want);
    if (at == all.end()) return std::nullopt;
    out.push_back(static_cast<int>(at - all.begin()));
  }
  return out;
}

/// Milliseconds of a step of a plan under another condition; infinity: it does not run there. `text`:
/// with the names of its choices.
inline double ms_of_plan(const machine_plan& p, const std::string& text, const graph& g, const machine& m,
                         const machine_plan_options& o) {
  constexpr double never = std::numeric_limits<double>::infinity();
  const mesh_shape& mesh = p.of->mesh;
  if (mesh.devices() > m.devices()) return never;
  try {
    const machine_options options = search_options(o);
    const planned_graph planned(g, options.lowered_for);
    const decision_graph d = decided_as_saved(planned, mesh, text, options);
    const std::optional<std::vector<int>> choices = choices_like(p, g, d);
    if (!choices) return never;
    described_conversions conversions(m, mesh);
    machine_search search(g, mesh, d, m, options, &planned.again, &conversions);
    const evaluated e = search.evaluate("saved", *choices);
    return e.fits ? e.when.ms : never;
  } catch (const bad_input&) {  // a mesh that straddles the machine's links
    return never;
  }
}

/// Milliseconds until all have what they lack, all devices at once: what the one that gets most gets, by its share of
/// the slowest links that join the machine's devices.
inline double moving_ms(const state_move& s, const machine& m) {
  double bandwidth = std::numeric_limits<double>::infinity(), latency = 0;
  for (std::size_t l = 0; l < m.levels.size(); ++l) {
    if (m.levels[l].joins < 2) continue;
    bandwidth = std::min(bandwidth, m.levels[l].bandwidth / m.unit(l));
    latency = std::max(latency, m.levels[l].latency);
  }
  return s.most() == 0 ? 0 : 1000 * (m.device.launch + latency + static_cast<double>(s.most()) / bandwidth);
}

}  // namespace detail

CFP_INLINE course_plan plan_course(const std::vector<condition>& all, const machine_plan_options& o) {
  if (all.empty()) throw bad_input("there is no condition to plan for");
  if (!o.table.empty() || o.measure_on.ms)
    throw bad_input("a table of operators says nothing of other conditions; leave it out");
  if (o.optimizers.size() > 1) throw bad_input("plans for several conditions are of one optimizer; name one");
  training how = in_micro_batches(o.how, o.micro_batches);
  if (!o.optimizers.empty()) how.optimizer = o.optimizers.front();
  course_plan out;
  std::vector<graph> graphs;
  std::vector<std::string> texts;  // of each plan its mesh and choices, by name
  for (const condition& c : all) {
    machine_plan_options there = o;
    if (o.tell) there.tell = [&](const progress& now) { return o.tell({c.name + ": " + now.what, now.share}); };
    machine_plan p = plan_for(c.forward, c.on, there);
    graphs.push_back(differentiate(refine(checked(c.forward)), checked(how)));
    out.table.conditions.push_back(c.name);
    if (!p.fits()) continue;
    detail::check_runs(p.of->g);
    const auto saved = to_json(p.best, p.of->g, p.of->mesh, p.of->decisions, p.model + p.trained);
    std::string text = to_string(p.of->mesh) + saved.at("decisions").dump();
    if (std::find(texts.begin(), texts.end(), text) != texts.end()) continue;
    texts.push_back(std::move(text)), out.table.plans.push_back(c.name), out.plans.push_back(std::move(p));
  }
  for (std::size_t p = 0; p < texts.size(); ++p) {
    const machine_plan& from = out.plans[p];
    out.table.ms.emplace_back(), out.moves.emplace_back(), out.table.change.emplace_back();
    for (std::size_t c = 0; c < all.size(); ++c)
      out.table.ms.back().push_back(detail::ms_of_plan(from, texts[p], graphs[c], all[c].on, o));
    for (const machine_plan& to : out.plans) {
      out.moves.back().push_back(moved_state(from.best.code, from.of->g, to.best.code, to.of->g));
      out.table.change.back().push_back(detail::moving_ms(out.moves.back().back(), to.of->on));
    }
  }
  for (std::size_t c = 0; c < all.size(); ++c) out.of_condition.push_back(out.table.fastest(static_cast<int>(c)));
  return out;
}

}  // namespace cfp
