// A machine that is described instead of measured: a device, and the levels at which devices are joined.
#pragma once

#include <cfp/core/bad_input.hpp>
#include <cfp/core/mesh.hpp>
#include <cfp/profile/machine/nccl_model.hpp>

#include <algorithm>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace cfp::inline v0_1 {

/// One kind of device. Rates are those programs attain on large problems, not those of data sheets.
struct device_type {
  std::string name = "device";
  std::map<std::string, double> product_rate{
      {"float32", 1e13}, {"bfloat16", 1e13}};  ///< operations per second of matrix products, by type
  /// The type that products with weights and their gradients are made in, "float8"; none: that of other numbers.
  std::string weight_products{};
  double bandwidth = 1e12;  ///< bytes per second to memory, read and written together
  long memory = 1l << 34;   ///< bytes a program may use
  double host_bandwidth =
      0;  ///< bytes per second and direction to memory of the host while all do; 0: nothing is kept there
  double launch = 5e-6;  ///< seconds an operator takes at least
  int processors = 1;    ///< that share a product's tiles (streaming multiprocessors); 1: any product attains the rate
  double tile = 128;     ///< rows and columns of the piece one of them works on
  double tile_depth = 512;  ///< of the inner dimension it takes at a time
  double hand_over = 0;     ///< seconds until one of its streams goes on that waited for the other
  double contention =
      1;  ///< how many times longer work takes while a collective runs beside it, and a collective while work does
  friend bool operator==(const device_type&, const device_type&) = default;
};

/// A measured collective.
struct collective_sweep {
  collective_kind kind = collective_kind::all_reduce;
  int devices = 1;
  int nodes = 1;    ///< over which they are spread evenly
  int at_once = 1;  ///< such groups on these nodes that did it at the same time and share what leaves a node
  std::vector<std::pair<double, double>> points;  ///< bytes (as nccl-tests counts them), seconds; bytes ascending
  std::string source;                             ///< who measured it, in words
  friend bool operator==(const collective_sweep&, const collective_sweep&) = default;
};

/// What joins devices, or groups of them, to larger groups.
struct interconnect {
  enum kind_t { plain, nvlink, pcie, network };
  std::string name = "links";
  kind_t kind = plain;  ///< NCCL's latencies and protocols; plain: `latency` and `bandwidth` alone
  int joins = 1;        ///< groups of the level before (devices, at the first)
  double bandwidth =
      1e11;  ///< bytes per second and direction between one of these and all others, for all devices in it together
  double latency = 0;  ///< seconds per collective beside what NCCL's model says; of a plain one all there is
  int channels = 1;    ///< of NCCL that it takes to reach this bandwidth
  double switch_reduction =
      0;  ///< bytes per second at which its switches add up an all-reduce (NVLS), or 0: they do not
  friend bool operator==(const interconnect&, const interconnect&) = default;
};

struct machine {
  std::string name = "machine";
  device_type device;
  generation chips = generation::ampere;
  std::vector<interconnect> levels;      ///< from the inside out
  std::vector<collective_sweep> sweeps;  ///< what was measured on it
  std::map<std::string, std::string>
      sources;  ///< where figures are from, in words, by entry: "device.launch", "levels.NVLink.bandwidth"

  int devices() const {
    int n = 1;
    for (const interconnect& l : levels) n *= l.joins;
    return n;
  }
  /// Devices in one of the groups that level joins.
  int unit(std::size_t level) const {
    int n = 1;
    for (std::size_t l = 0; l < level; ++l) n *= levels[l].joins;
    return n;
  }
  friend bool operator==(const machine&, const machine&) = default;
};

/// Its first so many devices, as far as its levels join so many and no others; of the sweeps those among them.
inline machine innermost(machine m, int devices) {
  for (std::size_t l = m.levels.size(); l-- > 0;) {
    const int unit = m.unit(l);
    m.levels[l].joins = std::max(1, devices / unit);
    if (devices >= unit) break;
  }
  while (m.levels.size() > 1 && m.levels.back().joins == 1) m.levels.pop_back();
  int nodes = 1;
  for (const interconnect& l : m.levels)
    if (l.kind == interconnect::network) nodes *= l.joins;
  std::erase_if(m.sweeps, [&](const collective_sweep& w) {
    return w.nodes > nodes || w.devices / w.nodes * w.at_once > m.devices() / nodes;
  });
  return m;
}

/// Links that take a latency per collective (seconds), and its bytes over a bandwidth (per second a device sends).
struct plain_links {
  double latency = 1e-5, bandwidth = 1e11;
};

/// A machine as simple as can be, with links for every axis of a mesh (the same for all, if one is given): for
/// experiments and tests.
inline machine plain_machine(const mesh_shape& mesh, double product_rate = 1e13, double bandwidth = 1e12,
                             double launch = 5e-6, const std::vector<plain_links>& links = {{}}) {
  machine m;
  m.device.product_rate = {{"float32", product_rate}, {"bfloat16", product_rate}, {"float64", product_rate}};
  m.device.bandwidth = bandwidth;
  m.device.launch = launch;
  for (int a = mesh.rank() - 1; a >= 0; --a) {
    const plain_links& of = links[std::min(static_cast<std::size_t>(a), links.size() - 1)];
    interconnect l;
    l.name = std::string(mesh.axes[a].label.view());
    l.joins = mesh.size(a);
    l.latency = of.latency;
    l.bandwidth = of.bandwidth;
    m.levels.push_back(l);
  }
  return m;
}

/// The devices that meet in a collective over one mesh axis, and where they sit.
struct device_group {
  int devices = 1;
  std::vector<int> within;    ///< per level: how many of them are in one of the groups it joins
  std::vector<double> share;  ///< per level: the part of such a group's bandwidth that is theirs, the rest belonging to
                              ///< equal groups beside them

  int nodes(std::size_t level) const { return devices / within[level]; }
  friend bool operator==(const device_group&, const device_group&) = default;
};

/// Along an axis of a mesh on a machine: ranks fill the innermost level first, the last axis varies fastest.
inline device_group group_of(const machine& m, const mesh_shape& mesh, int axis) {
  int stride = 1;
  for (int a = axis + 1; a < mesh.rank(); ++a) stride *= mesh.size(a);
  device_group out;
  out.devices = mesh.size(axis);
  for (std::size_t l = 0; l < m.levels.size(); ++l) {
    const int unit = m.unit(l), used = std::min(unit, mesh.devices());
    const int inside = std::clamp(unit / stride, 1, out.devices);
    if (unit % std::min(unit, stride) != 0 || out.devices % inside != 0)
      throw bad_input("axis '" + std::string(mesh.axes[axis].label.view()) + "' of size " +
                      std::to_string(out.devices) + " straddles the groups of " + std::to_string(unit) +
                      " devices that '" + m.levels[l].name + "' of '" + m.name +
                      "' joins; choose sizes that divide them evenly");
    out.within.push_back(inside);
    out.share.push_back(static_cast<double>(inside) / used);
  }
  return out;
}

/// Along a set of axes at once, a bit each.
inline device_group group_of(const machine& m, const mesh_shape& mesh, unsigned axes) {
  device_group out{1, std::vector<int>(m.levels.size(), 1), std::vector<double>(m.levels.size())};
  for (int a = 0; a < mesh.rank(); ++a) {
    if ((axes >> a & 1) == 0) continue;
    const device_group one = group_of(m, mesh, a);
    out.devices *= one.devices;
    for (std::size_t l = 0; l < m.levels.size(); ++l) out.within[l] *= one.within[l];  // inner axes are whole within
  }
  for (std::size_t l = 0; l < m.levels.size(); ++l)
    out.share[l] = static_cast<double>(out.within[l]) / std::min(m.unit(l), mesh.devices());
  return out;
}

}  // namespace cfp
