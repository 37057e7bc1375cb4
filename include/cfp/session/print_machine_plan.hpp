// A plan for a machine that is described as text and as JSON: see plan_for.hpp.
#pragma once

#include <cfp/session/curve.hpp>
#include <cfp/session/lines.hpp>
#include <cfp/session/plan_for_implementation.hpp>
#include <cfp/session/print_meshes.hpp>
#include <cfp/session/print_terms.hpp>

#include <limits>
#include <ostream>
#include <string>
#include <utility>

namespace cfp::inline v0_1 {

CFP_INLINE std::ostream& operator<<(std::ostream& out, const machine_plan& p) {
  using detail::printed;
  out << printed("on %s, %s a device, %s\n%s; %s\n", p.machine.c_str(), detail::memory_text(p.memory_gib).c_str(),
                 p.type.c_str(), p.kernels.c_str(), p.times.c_str());
  if (p.of && p.of->mesh.devices() < p.devices)
    out << "the mesh has " << p.of->mesh.devices() << " of the machine's " << p.devices << " devices\n";
  detail::print_meshes(out << '\n', p.meshes);
  for (const machine_plan::form& f : p.forms)
    out << (&f == p.forms.data() ? "\nby optimizer: " : "; ") << f.optimizer
        << (f.fits ? printed(" %.1f ms", f.ms) : std::string(" nothing fits"));
  if (!p.forms.empty()) out << '\n';
  for (const machine_plan::pieces& x : p.passes) {
    out << (&x == p.passes.data() ? "\nby micro-batches: " : "; ") << x.micro_batches;
    if (x.ms < std::numeric_limits<double>::infinity()) out << printed(" %.1f ms", x.ms);
    else out << (p.fits() ? " none fits that is faster" : " none fits");
  }
  if (!p.passes.empty()) out << '\n';
  detail::print_curve(out, p.curve);
  if (!p.fits()) return out;
  out << printed(
      "\nplan for mesh %s, the last axis innermost, by %s: %.1f ms of operators, %.1f ms more waiting for "
      "collectives\n",
      p.meshes.front().mesh.c_str(), p.optimizer.c_str(), p.operators_ms, p.exposed_ms);
  if (p.is_whole()) detail::print_memory(out, p.memory);
  return detail::print_lines(out, p.lines);
}

CFP_INLINE std::string machine_plan::json() const {
  nlohmann::ordered_json j{{"model", model + trained},
                           {"machine", machine},
                           {"type", type},
                           {"optimizer", optimizer},
                           {"times", times},
                           {"kernels", kernels},
                           {"meshes", nlohmann::ordered_json::array()}};
  for (const plan_line& l : lines)
    j["decisions"].push_back(
        {{"decision", l.decision}, {"choice", l.choice}, {"bytes_per_rank", l.sent.total_bytes()}});
  for (const on_mesh& on : meshes) {
    nlohmann::ordered_json plans = nlohmann::ordered_json::array();
    for (const priced& p : on.plans)
      plans.push_back(
          {{"name", p.plan}, {"step_ms", p.ms}, {"peak_bytes", p.peak_bytes}, {"fits", p.fits}, {"gap", p.gap}});
    j["meshes"].push_back({{"mesh", on.mesh}, {"searched", on.searched}, {"plans", std::move(plans)}});
  }
  if (is_whole()) j["terms"] = terms_json(terms());
  for (const form& f : forms)
    j["optimizers"].push_back({{"name", f.optimizer}, {"fits", f.fits}, {"step_ms", f.fits ? f.ms : 0.0}});
  for (const pieces& x : passes)
    j["micro_batches"].push_back(
        {{"count", x.micro_batches}, {"step_ms", x.ms < std::numeric_limits<double>::infinity() ? x.ms : 0.0}});
  for (const point& p : curve)
    j["curve"].push_back(
        {{"mesh", p.mesh}, {"name", p.plan}, {"step_ms", p.ms}, {"peak_bytes", p.peak_bytes}, {"fits", p.fits}});
  return j.dump(1);
}

}  // namespace cfp
