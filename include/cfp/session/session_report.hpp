// What a report shows of a plan that was measured.
#pragma once

#include <cfp/core/bad_input.hpp>
#include <cfp/session/implementation.hpp>
#include <cfp/session/measured_lanes.hpp>
#include <cfp/session/report_choices.hpp>
#include <cfp/session/report_figures.hpp>

namespace cfp::inline v0_1 {

CFP_INLINE report_view session::report() {
  parts& s = mine();
  const found_plan& f = s.search();
  if (s.costs.nodes.empty())
    throw bad_input(
        "a plan from a file has no measurements to report: leave it out, or name a machine that is described");
  report_view out;
  out.model = f.model, out.mesh = f.mesh, out.type = name_of(s.o.type), out.optimizer = name_of(s.o.how.optimizer);
  out.machine = s.ranks().description();
  out.times = "measured on these ranks: parts and conversions, then segments as wholes";
  out.predicted_ms = out.timeline_ms = f.best.predicted_ms;
  out.peak_bytes = f.peak_bytes, out.limit_bytes = f.limit_bytes;
  for (const mesh_axis& a : s.mesh.axes) out.axes.push_back({std::string(a.label.view()), a.size, {}});
  detail::count_model(s.g, out);
  const detail::report_rows rows(s.g, s.decided, f.best.choices, [](int) { return 0; });
  out.decisions = rows.decisions, out.segments = rows.segments;
  detail::put_sent(sent_for(f.best, s.g, s.decided), rows, out);
  const detail::report_choices sums(s.costs, s.decided, f.best.choices);
  sums.write(rows, out.decisions);
  out.additive_ms = sums.ms();
  detail::measured_lanes(s.costs, s.decided, rows, f.best).put(out);
  const program& code = f.best.code;
  detail::put_memory_in_order(code, s.g, f.peak_bytes - code.arena_bytes - code.persistent_bytes(), out);
  const auto compared = [&](const cfp::plan& p, bool found) {
    const long peak = predicted_peak(p);
    out.plans.push_back(
        {p.name, found ? "found" : "usual", out.mesh, p.predicted_ms, peak, peak <= s.limit().value_or(peak), found});
  };
  compared(f.best, true);
  for (const cfp::plan& p : f.others) compared(p, false);
  detail::sort_compared(out.plans);
  solve_options brief;
  brief.max_seconds = 10;
  cost_graph within = s.costs;
  within.memory_limit = s.limit();
  for (const solution& point : memory_curve(within, 12, brief))
    out.curve.push_back({"by sums of parts", "found", out.mesh, point.time, point.memory, true, false});
  return out;
}

}  // namespace cfp
