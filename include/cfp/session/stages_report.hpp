// What a report shows of a plan in stages.
#pragma once

#include <cfp/profile/machine/described_times.hpp>
#include <cfp/session/plan_in_stages_implementation.hpp>
#include <cfp/session/report_figures.hpp>
#include <cfp/session/report_machine.hpp>
#include <cfp/session/report_timeline.hpp>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace cfp::inline v0_1 {

namespace detail {

// What each stage by itself could choose otherwise.
inline void put_reasons(const std::vector<stage_reasons>& all, const decision_graph& d, const report_rows& rows,
                        report_view& out) {
  for (const stage_reasons& s : all)
    for (const stage_reasons::decided& x : s.decisions) {
      if (x.other.choice < 0) continue;
      report_view::alternative a;
      a.choice = d.nodes[x.node].names[static_cast<std::size_t>(x.other.choice)];
      a.best_ms = x.other.price, a.proven = x.other.proven;
      out.decisions[static_cast<std::size_t>(rows.row_of(x.node))].others.push_back(std::move(a));
    }
}

}  // namespace detail

CFP_INLINE report_view stages_plan::report() const {
  const staged_layout& l = plan.layout;
  const cfp::plan p = made();
  const stage_programs& all = *p.in_stages;
  report_view out;
  out.model = model + of->trained, out.type = type, out.optimizer = optimizer, out.kernels = kernels;
  out.times = "all times are simulated", out.mesh = to_string(l.whole()), out.schedule = l.schedule;
  out.predicted_ms = plan.price.ms, out.peak_bytes = plan.price.peak;
  out.limit_bytes = static_cast<long>(memory_gib * (1 << 30));
  detail::describe(of->on, l.whole(), out);
  detail::count_model(of->g, out);
  const detail::report_rows rows(of->g, of->decisions, plan.choices, [&](int o) {
    return static_cast<int>(std::upper_bound(l.first.begin(), l.first.end(), o) - l.first.begin());
  });
  out.decisions = rows.decisions, out.segments = rows.segments;
  detail::put_sent(sent_for(p, of->g, of->decisions), rows, out);
  detail::put_reasons(reasons(of->g, of->decisions, plan, of->on, of->options), of->decisions, rows, out);
  described_times each(of->on, all.along[0].mesh, of->options.known);
  std::vector<std::vector<double>> ms;
  for (const program& one : all.along) {
    ms.emplace_back();
    for (const instruction& i : one.code) ms.back().push_back(each(i, one, all.g));
  }
  std::vector<stream_events> seen;
  const device_type& device = of->on.device;
  const stage_timeline when = simulate(all.along, ms, device.contention, 1000 * device.hand_over, &seen);
  out.timeline_ms = when.ms, out.idle = when.idle();
  detail::report_timeline lanes(out, rows, of->g, of->decisions);
  for (int place = 0; place < l.places; ++place) {
    std::string label = "place " + std::to_string(place) + (l.chunks > 1 ? ": stages " : ": stage ");
    for (int s = place; s < l.stages(); s += l.places) label += (s > place ? ", " : "") + std::to_string(s);
    const auto at = static_cast<std::size_t>(place);
    lanes.add(label, all.along[at], all.g, seen[at], when.ms, 0);
  }
  out.plans.push_back({"found", "found", out.mesh, plan.price.ms, plan.price.peak, true, true});
  for (const staged_usual& u : plan.usual)
    out.plans.push_back({u.name + ", " + u.kept + ", " + u.layout.schedule, "usual", to_string(u.layout.whole()),
                         u.price.ms, u.price.peak, u.price.peak <= out.limit_bytes, false});
  detail::sort_compared(out.plans);
  return out;
}

}  // namespace cfp
