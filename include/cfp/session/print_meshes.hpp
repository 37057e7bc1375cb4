// The table of a machine's meshes: what was found for each, and the best of what people use.
#pragma once

#include <cfp/session/plan_for.hpp>
#include <cfp/session/texts.hpp>
#include <cfp/solve/explain/explanation.hpp>

#include <algorithm>
#include <ostream>
#include <string>
#include <vector>

namespace cfp::inline v0_1::detail {

inline std::string priced_text(const machine_plan::on_mesh& on, const char* kind) {
  const bool compared = std::any_of(on.plans.begin(), on.plans.end(), [](const auto& p) { return p.kind == "usual"; });
  if (!compared) return kind == std::string("usual") ? "not compared" : "";
  const machine_plan::priced* const e = on.fastest(kind);
  return e == nullptr ? std::string("none fits") : printed("%.1f ms  %s", e->ms, e->plan.c_str());
}

inline std::string found_text(const machine_plan::on_mesh& on) {
  if (!on.searched) return "left out: the seconds given were over";
  if (const machine_plan::priced* const e = on.fastest()) return printed("%9.1f ms %10.2f", e->ms, gib(e->peak_bytes));
  return "nothing fits" +
         (on.least_bytes > 0 ? ", the leanest plan tried needs " + bytes_text(on.least_bytes) : std::string());
}

inline void print_meshes(std::ostream& out, const std::vector<machine_plan::on_mesh>& meshes) {
  std::size_t width = 36;  // of the plans people use, which may have long names
  for (const machine_plan::on_mesh& on : meshes) width = std::max(width, priced_text(on, "usual").size());
  const auto row = [&](const std::string& mesh, const std::string& found, const std::string& usual,
                       const std::string& alpa) {
    std::string line = printed("%-14s %s   %-*s %s", mesh.c_str(), found.c_str(), static_cast<int>(width),
                               usual.c_str(), alpa.c_str());
    out << line.erase(line.find_last_not_of(' ') + 1) << '\n';
  };
  row("mesh", printed("%12s %10s", "found", "peak GiB"), "best plan people use", "Alpa's");
  for (const machine_plan::on_mesh& on : meshes) {
    const bool any = on.searched && on.fastest() != nullptr;
    row(short_mesh(on.mesh), found_text(on), any ? priced_text(on, "usual") : "", any ? priced_text(on, "alpa") : "");
  }
}

}  // namespace cfp::detail
