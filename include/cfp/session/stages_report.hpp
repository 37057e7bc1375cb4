// What a report shows of a plan in stages, and where the time of its step goes.
#pragma once

#include <cfp/profile/machine/pipeline_times.hpp>
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

struct stages_plan::simulation {
  cfp::plan made;
  std::vector<std::vector<double>> alone{};  ///< milliseconds of each place's instructions
  std::vector<stream_events> seen{};
  stage_timeline when{};
};

CFP_INLINE stages_plan::simulation stages_plan::simulated() const {
  simulation out{made()};
  const stage_programs& all = *out.made.in_stages;
  const staged_layout& l = plan.layout;
  pipeline_times each(placed_pools(of->on, l.inside, l.places, l.pools), of->options.known);
  for (const program& one : all.along) out.alone.push_back(each(one, all.g));
  out.when = simulate(all.along, out.alone, each.paces(), &out.seen);
  return out;
}

CFP_INLINE std::vector<std::vector<time_term>> stages_plan::terms() const {
  const simulation all = simulated();
  const stage_programs& made = *all.made.in_stages;
  std::vector<std::vector<time_term>> out;
  for (std::size_t p = 0; p < made.along.size(); ++p)
    out.push_back(time_terms(made.along[p], made.g, all.seen[p], all.alone[p], all.when.ms));
  return out;
}

CFP_INLINE report_view stages_plan::report() const {
  const staged_layout& l = plan.layout;
  const simulation made = simulated();
  const cfp::plan& p = made.made;
  const stage_programs& all = *p.in_stages;
  report_view out;
  out.model = model + of->trained, out.type = type, out.optimizer = optimizer, out.kernels = kernels;
  out.times = "all times are simulated", out.mesh = to_string(l.whole()), out.schedule = l.schedule;
  out.predicted_ms = plan.price.ms, out.peak_bytes = plan.price.peak;
  out.limit_bytes = static_cast<long>(memory_gib * (1 << 30));
  const placed_pools places(of->on, l.inside, l.places, l.pools);
  detail::describe(places.seen_from(places.pool(0)), l.whole(), out);
  if (places.pools() > 1) out.machine = of->on.name() + "; described is that of place 0";
  detail::count_model(of->g, out);
  const detail::report_rows rows(of->g, of->decisions, plan.choices, [&](int o) {
    return static_cast<int>(std::upper_bound(l.first.begin(), l.first.end(), o) - l.first.begin());
  });
  out.decisions = rows.decisions, out.segments = rows.segments;
  detail::put_sent(sent_for(p, of->g, of->decisions), rows, out);
  detail::put_reasons(reasons(of->g, of->decisions, plan, of->on, of->options), of->decisions, rows, out);
  out.timeline_ms = made.when.ms, out.idle = made.when.idle();
  detail::report_timeline lanes(out, rows, of->g, of->decisions);
  for (int place = 0; place < l.places; ++place) {
    std::string label = "place " + std::to_string(place) + (l.chunks > 1 ? ": stages " : ": stage ");
    for (int s = place; s < l.stages(); s += l.places) label += (s > place ? ", " : "") + std::to_string(s);
    const auto at = static_cast<std::size_t>(place);
    lanes.add(label, all.along[at], all.g, made.seen[at], made.when.ms, 0);
  }
  out.plans.push_back({"found", "found", out.mesh, plan.price.ms, plan.price.peak, true, true});
  for (const staged_usual& u : plan.usual)
    out.plans.push_back({u.name + ", " + u.kept + ", " + u.layout.schedule, "usual", to_string(u.layout.whole()),
                         u.price.ms, u.price.peak, fits(u.price), false});
  detail::sort_compared(out.plans);
  return out;
}

}  // namespace cfp
