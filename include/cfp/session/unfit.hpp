// What is said where no plan fits on a machine.
#pragma once

#include <cfp/plan/machine_options.hpp>
#include <cfp/profile/machine/machine.hpp>
#include <cfp/session/plan_for.hpp>
#include <cfp/session/texts.hpp>
#include <cfp/solve/explain/explanation.hpp>

#include <cstddef>
#include <string>

namespace cfp::inline v0_1::detail {

/// What the leanest plan needs against the limit, and what was not allowed that might have helped.
inline std::string unfit(const machine_plan& p, const machine& m, const machine_plan_options& o) {
  const long limit = o.memory > 0 ? o.memory : m.device.memory;
  const machine_plan::on_mesh* leanest = nullptr;
  std::size_t left_out = 0;
  for (const machine_plan::on_mesh& on : p.meshes) {
    left_out += !on.searched;
    if (on.searched && on.least_bytes > 0 && (leanest == nullptr || on.least_bytes < leanest->least_bytes))
      leanest = &on;
  }
  std::string out = "no plan fits in " + bytes_text(limit) + " of a device";
  if (leanest != nullptr)
    out += "; the leanest plan tried, on mesh " + short_mesh(leanest->mesh) + ", needs " +
           bytes_text(leanest->least_bytes) + ", " + bytes_text(leanest->least_bytes - limit) + " more";
  if (left_out > 0)
    out += printed("; %zu of %zu meshes were left out, for the %.3g seconds given were over: give more", left_out,
                   p.meshes.size(), o.seconds);
  else if (o.seconds < 1e9) out += printed("; the search was given %.3g seconds, which may be too few", o.seconds);
  if (o.recompute == recomputing::none) out += "; nothing may be computed again, which would take less memory";
  else if (!(m.device.host_bandwidth > 0))
    out += "; nothing may rest on the host, for machine " + m.name + " has no device.host_bandwidth";
  return out;
}

}  // namespace cfp::detail
