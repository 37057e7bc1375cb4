// A described machine, and how a mesh lies on it, as a report shows it.
#pragma once

#include <cfp/export/report/report_view.hpp>
#include <cfp/profile/machine/machine_check.hpp>

#include <cstddef>
#include <string>

namespace cfp::inline v0_1::detail {

// What joins the devices that meet along an axis: "NVSwitch: 4", of these groups that meet.
inline std::vector<std::string> along(const machine& m, const mesh_shape& mesh, int axis) {
  const device_group group = group_of(m, mesh, axis);
  std::vector<std::string> out;
  for (std::size_t l = 0; l < m.levels.size(); ++l) {
    const int above = l + 1 < m.levels.size() ? group.within[l + 1] : group.devices;
    if (above > group.within[l]) out.push_back(m.levels[l].name + ": " + std::to_string(above / group.within[l]));
  }
  return out;
}

/// `mesh`: of all ranks.
inline void describe(const machine& m, const mesh_shape& mesh, report_view& out) {
  out.machine = m.name;
  const device_type& d = m.device;
  out.each = {d.name, d.memory, d.bandwidth, d.host_bandwidth, 1e6 * d.launch, d.contention, {}};
  out.each.product_rates.assign(d.product_rate.begin(), d.product_rate.end());
  for (const interconnect& l : m.levels)
    out.levels.push_back({l.name, std::string(interconnect_names[l.kind]), l.joins, l.bandwidth});
  out.sources.assign(m.sources.begin(), m.sources.end());
  for (int a = 0; a < mesh.rank(); ++a)
    out.axes.push_back({std::string(mesh.axes[a].label.view()), mesh.size(a), along(m, mesh, a)});
}

}  // namespace cfp::inline v0_1::detail
