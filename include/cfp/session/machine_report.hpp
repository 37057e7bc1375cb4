// What a report shows of a plan for a described machine, and where the time of its step goes.
#pragma once

#include <cfp/core/bad_input.hpp>
#include <cfp/session/plan_for_implementation.hpp>
#include <cfp/session/report_choices.hpp>
#include <cfp/session/report_figures.hpp>
#include <cfp/session/report_machine.hpp>
#include <cfp/session/report_timeline.hpp>

namespace cfp::inline v0_1 {

namespace detail {

// What the streams of the found plan do; milliseconds of the step.
inline double simulate_found(const machine_plan& p, stream_events& seen) {
  const device_type& device = p.of->on.device;
  return simulate(p.best.code, p.of->instruction_ms, device.contention, 1000 * device.hand_over, &seen).ms;
}

}  // namespace detail

CFP_INLINE std::vector<time_term> machine_plan::terms() const {
  if (!of) throw bad_input(unfit + "; there is none to look into");
  detail::check_runs(of->g);
  stream_events seen;
  const double ms = detail::simulate_found(*this, seen);
  return time_terms(best.code, of->g, seen, of->instruction_ms, ms);
}

CFP_INLINE report_view machine_plan::report() const {
  if (!of) throw bad_input(unfit + "; there is none to report");
  detail::check_runs(of->g);
  const priced& found = of->taken;
  report_view out;
  out.model = model + trained, out.type = type, out.optimizer = optimizer, out.times = times, out.kernels = kernels;
  out.mesh = to_string(of->mesh);
  out.predicted_ms = found.ms, out.peak_bytes = found.peak_bytes;
  out.limit_bytes = static_cast<long>(memory_gib * (1 << 30));
  detail::describe(of->on, of->mesh, out);
  detail::count_model(of->g, out);
  const detail::report_rows rows(of->g, of->decisions, best.choices, [](int) { return 0; });
  out.decisions = rows.decisions, out.segments = rows.segments;
  detail::put_sent(sent_for(best, of->g, of->decisions), rows, out);
  const detail::report_choices sums(of->sums, of->decisions, best.choices);
  sums.write(rows, out.decisions);
  out.additive_ms = sums.ms();
  stream_events seen;
  out.timeline_ms = detail::simulate_found(*this, seen);
  detail::report_timeline(out, rows, of->g, of->decisions)
      .add("each device", best.code, of->g, seen, out.timeline_ms, memory_allowance(best.code));
  out.idle = out.timeline_ms > 0 ? 1 - out.places[0].busy_ms / out.timeline_ms : 0;
  const auto is_taken = [&](const std::string& on, const priced& p) {
    return on == out.mesh && p.plan == found.plan && p.ms == found.ms && p.peak_bytes == found.peak_bytes;
  };
  for (const on_mesh& on : meshes)
    for (const priced& p : on.plans)
      out.plans.push_back({p.plan, p.kind, on.mesh, p.ms, p.peak_bytes, p.fits, is_taken(on.mesh, p)});
  detail::sort_compared(out.plans);
  for (const point& p : curve)
    out.curve.push_back({p.plan, p.kind, p.mesh, p.ms, p.peak_bytes, p.fits, is_taken(p.mesh, p)});
  return out;
}

}  // namespace cfp
