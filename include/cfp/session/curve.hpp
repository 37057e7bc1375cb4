// What memory is worth on a machine, as people read it.
#pragma once

#include <cfp/core/bad_input.hpp>
#include <cfp/plan/mesh_curve.hpp>
#include <cfp/session/plan_for.hpp>
#include <cfp/session/texts.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

namespace cfp::inline v0_1::detail {

inline void check_curve(const machine_plan_options& o) {
  if (o.curve < 0 || o.curve == 1)
    throw bad_input("curve must be 0 or at least 2 limits of memory, is " + std::to_string(o.curve));
}

/// Of the plans of all meshes, and of those for other limits on one, what none beats: the fastest first.
inline std::vector<machine_plan::point> not_beaten(const std::vector<machine_plan::on_mesh>& meshes,
                                                   const mesh_points& others) {
  std::vector<machine_plan::point> all;
  for (const machine_plan::on_mesh& on : meshes)
    for (const machine_plan::priced& p : on.plans) all.push_back({p, on.mesh});
  for (const evaluated& e : others.plans)
    all.push_back({{e.p.name, "found", e.when.ms, e.peak, e.fits, e.gap}, to_string(others.mesh)});
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
    return std::pair(a.ms, a.peak_bytes) < std::pair(b.ms, b.peak_bytes);
  });
  std::vector<machine_plan::point> out;
  for (const machine_plan::point& p : all)
    if (out.empty() || p.peak_bytes < out.back().peak_bytes) out.push_back(p);
  return out;
}

inline void print_curve(std::ostream& out, const std::vector<machine_plan::point>& curve) {
  if (curve.empty()) return;
  out << printed("\n%-14s %12s %10s   %-36s %s\n", "memory's worth", "step", "peak GiB", "plan",
                 "time beyond the first's");
  const double first = curve.front().ms, longest = curve.back().ms - first;
  for (const machine_plan::point& p : curve) {
    const auto bar = longest > 0 ? static_cast<std::size_t>(std::lround(20 * (p.ms - first) / longest)) : 0;
    out << printed("%-14s %9.1f ms %10.2f   %-36s %s\n", short_mesh(p.mesh).c_str(), p.ms, gib(p.peak_bytes),
                   (p.plan + (p.fits ? "" : ", more than there is")).c_str(), std::string(bar, '#').c_str());
  }
}

}  // namespace cfp::detail
