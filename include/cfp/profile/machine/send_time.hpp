// What a send from one rank to another takes on a described machine.
#pragma once

#include <cfp/profile/machine/machine.hpp>

#include <algorithm>
#include <limits>

namespace cfp::inline v0_1 {

/// Seconds until what ranks at one place on the first axis of a mesh send to those at another is there, its launch
/// included; all of them send at once. NCCL's latencies by its two protocols for sends, the faster one; links that are
/// plain have their own.
inline double send_seconds(const machine& m, const mesh_shape& mesh, int from, int to, double bytes) {
  const int beside = mesh.devices() / mesh.size(0);  // ranks at one place
  double latency = 0, bandwidth = std::numeric_limits<double>::infinity();
  bool plain = false, network = false, nvlink = false;
  for (std::size_t l = 0; l < m.levels.size(); ++l) {
    const int unit = m.unit(l), first = from * beside / unit, last = to * beside / unit;
    if (first == last) break;  // they are in one of the groups that it joins
    const interconnect& i = m.levels[l];
    plain = plain || i.kind == interconnect::plain;
    network = network || i.kind == interconnect::network;
    nvlink = i.kind == interconnect::nvlink;
    latency = std::max(latency, i.latency);
    bandwidth = std::min(bandwidth, i.bandwidth / std::min(unit, beside));
  }
  if (plain) return m.device.launch + latency + bytes / bandwidth;
  using t = detail::nccl_tables;
  double least = std::numeric_limits<double>::infinity();
  for (const int protocol : {t::ll, t::simple}) {
    const double hop = (network ? t::network_ring : nvlink ? t::nvlink_ring : t::pcie_ring)[protocol];
    const double rate =
        protocol == t::ll ? bandwidth / 2 : bandwidth;  // every other word says that the one before is there
    least = std::min(least, 1e-6 * (t::base_ring[protocol] + hop) + bytes / rate);
  }
  return m.device.launch + latency + least;
}

}  // namespace cfp
