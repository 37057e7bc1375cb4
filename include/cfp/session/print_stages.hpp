// How a plan in stages prints, explains itself and is saved.
#pragma once

#include <cfp/export/plan_file.hpp>
#include <cfp/export/plan_header.hpp>
#include <cfp/file/new_file.hpp>
#include <cfp/plan/stages/realise_stages.hpp>
#include <cfp/plan/stages/stage_reasons.hpp>
#include <cfp/profile/machine/described_prices.hpp>
#include <cfp/session/lines.hpp>
#include <cfp/session/print_terms.hpp>
#include <cfp/session/stages_plan.hpp>
#include <cfp/session/texts.hpp>

#include <nlohmann/json.hpp>

#include <ostream>
#include <string>

namespace cfp::inline v0_1 {

CFP_INLINE std::ostream& operator<<(std::ostream& out, const stages_plan& p) {
  using detail::mib, detail::printed;
  const staged_layout& l = p.plan.layout;
  out << printed("on %s, %s a device, %s\n%s; all times are simulated\n\n", p.machine.c_str(),
                 detail::memory_text(p.memory_gib).c_str(), p.type.c_str(), p.kernels.c_str())
      << (p.ended_early ? "the seconds given were over: the best that was known by then\n" : "")
      << printed("%d places of mesh %s%s, %s, %d micro-batches of %ld row%s, by %s\n", l.places,
                 to_string(l.inside).c_str(), l.chunks > 1 ? printed(", %d stages each", l.chunks).c_str() : "",
                 l.schedule.c_str(), p.plan.micro_batches, p.plan.rows, p.plan.rows > 1 ? "s" : "", p.optimizer.c_str())
      << printed("a step takes %.1f ms, ranks stand idle %.1f%% of it; a device takes at most %.1f MiB of %.0f\n\n",
                 p.plan.price.ms, 100 * p.plan.price.idle, mib(p.plan.price.peak), 1024 * p.memory_gib)
      << printed("%5s %6s %9s %13s %14s %8s  %s\n", "stage", "place", "peak MiB", "forward ms", "backward ms",
                 "once ms", p.stages.front().pool.empty() ? "begins with" : "on, begins with");
  for (std::size_t s = 0; s < p.stages.size(); ++s) {
    const stages_plan::stage& x = p.stages[s];
    out << printed("%5zu %6d %9.1f %13.2f %14.2f %8.2f  %s\n", s, x.place,
                   mib(p.plan.price.peaks[static_cast<std::size_t>(x.place)]), x.forward_ms, x.backward_ms, x.once_ms,
                   (x.pool + (x.pool.empty() ? "" : "  ") + x.first).c_str());
  }
  if (!p.plan.usual.empty())
    out << printed("\nplans people use, %d stages on these places, as many layers each\n%-32s %10s %12s\n", l.stages(),
                   "", "step ms", "peak MiB");
  for (const staged_usual& u : p.plan.usual)
    out << printed("%-32s %10.1f %12.1f  %s%s\n", u.name.c_str(), u.price.ms, mib(u.price.peak), u.kept.c_str(),
                   p.fits(u.price) ? "" : ", more than there is");
  return detail::print_lines(out << '\n', p.lines);
}

CFP_INLINE cfp::plan stages_plan::made() const {
  const staged_layout& l = plan.layout;
  const placed_pools places(of->on, l.inside, l.places, l.pools);
  const described_prices prices(places.seen_from(places.pool(0)), places.whole());
  target on = of->options.lowered_for;
  on.prices = &prices;
  cfp::plan out = realise("found", of->g, l, of->decisions, plan.choices, on);
  out.predicted_ms = plan.price.ms;
  return out;
}
CFP_INLINE void stages_plan::save_plan(const std::string& path) const {
  const std::string called = model + of->trained;
  write_file(path, to_json(made(), of->g, plan.layout.whole(), of->decisions, called, &plan.layout).dump(1));
}

CFP_INLINE void stages_plan::save_header(const std::string& path) const {
  const block_structure blocks = parallel_blocks(of->g);
  const segmentation parts = segments(of->g, blocks);
  write_file(path, plan_header(detail::header_space(path), model + of->trained, made(), of->g,
                               segment_times(blocks, parts, of->decisions)));
}

CFP_INLINE std::string stages_plan::explain() const {
  return to_text(reasons(of->g, of->decisions, plan, of->on, of->options), of->decisions);
}

CFP_INLINE bool stages_plan::fits(const staged_price& price) const {
  const staged_layout& l = plan.layout;
  return bytes_over(price, placed_pools(of->on, l.inside, l.places, l.pools), of->options.memory) <= 0;
}

CFP_INLINE std::string stages_plan::json() const {
  const staged_layout& l = plan.layout;
  nlohmann::ordered_json j{{"model", model},
                           {"machine", machine},
                           {"type", type},
                           {"optimizer", optimizer},
                           {"kernels", kernels},
                           {"devices", devices},
                           {"memory_gib", memory_gib},
                           {"places", l.places},
                           {"chunks", l.chunks},
                           {"schedule", l.schedule},
                           {"mesh", nlohmann::ordered_json::object()},
                           {"micro_batches", plan.micro_batches},
                           {"rows", plan.rows},
                           {"step_ms", plan.price.ms},
                           {"ended_early", ended_early},
                           {"idle", plan.price.idle},
                           {"peak_bytes", plan.price.peak},
                           {"peak_bytes_of_places", plan.price.peaks},
                           {"stages", nlohmann::ordered_json::array()},
                           {"decisions", nlohmann::ordered_json::array()}};
  for (const mesh_axis& a : l.inside.axes) j["mesh"][std::string(a.label.view())] = a.size;
  for (const stage& s : stages) {
    j["stages"].push_back({{"place", s.place},
                           {"first", s.first},
                           {"forward_ms", s.forward_ms},
                           {"backward_ms", s.backward_ms},
                           {"once_ms", s.once_ms}});
    if (!s.pool.empty()) j["stages"].back()["pool"] = s.pool;
  }
  for (const staged_usual& u : plan.usual)
    j["usual"].push_back({{"name", u.name},
                          {"kept", u.kept},
                          {"schedule", u.layout.schedule},
                          {"step_ms", u.price.ms},
                          {"peak_bytes", u.price.peak}});
  for (const plan_line& line : lines) j["decisions"].push_back({{"decision", line.decision}, {"choice", line.choice}});
  for (const std::vector<time_term>& place : terms()) j["terms"].push_back(terms_json(place));
  return j.dump(1) + "\n";
}

}  // namespace cfp
