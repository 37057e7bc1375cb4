// What a send from one rank to another takes on a described machine.
#pragma once

#include <cfp/profile/machine/collective_time.hpp>
#include <cfp/program/handed.hpp>

#include <algorithm>
#include <limits>

namespace cfp::inline v0_1 {

namespace detail {

// What is sent from one rank to another goes over.
struct hop {
  double latency = 0, bandwidth = std::numeric_limits<double>::infinity();
  bool plain = false, network = false, nvlink = false;

  void over(const interconnect& i, double rate) {
    plain = plain || i.kind == interconnect::plain;
    network = network || i.kind == interconnect::network;
    nvlink = i.kind == interconnect::nvlink;
    latency = std::max(latency, i.latency);
    bandwidth = std::min(bandwidth, rate);
  }
  // NCCL's latencies by its two protocols for sends, the faster one; links that are plain have their own.
  double seconds(double bytes) const {
    if (plain) return latency + bytes / bandwidth;
    using t = nccl_tables;
    double least = std::numeric_limits<double>::infinity();
    for (const int protocol : {t::ll, t::simple}) {
      const double by = (network ? t::network_ring : nvlink ? t::nvlink_ring : t::pcie_ring)[protocol];
      const double rate =
          protocol == t::ll ? bandwidth / 2 : bandwidth;  // every other word says that the one before is there
      least = std::min(least, 1e-6 * (t::base_ring[protocol] + by) + bytes / rate);
    }
    return latency + least;
  }
};

}  // namespace detail

/// Seconds until what ranks at one place on the first axis of a mesh send to those at another is there, its launch
/// included; all of them send at once.
inline double send_seconds(const machine& m, const mesh_shape& mesh, int from, int to, double bytes) {
  const int beside = mesh.devices() / mesh.size(0);  // ranks at one place
  detail::hop way;
  for (std::size_t l = 0; l < m.levels.size(); ++l) {
    const int unit = m.unit(l), first = from * beside / unit, last = to * beside / unit;
    if (first == last) break;  // they are in one of the groups that it joins
    way.over(m.levels[l], m.levels[l].bandwidth / std::min(unit, beside));
  }
  return m.device.launch + way.seconds(bytes);
}

/// Seconds of what a scan hands on along a group of devices, from each to the next: in a shift all at once; in a sum
/// slice by slice, which the last one gets after it was at all others (ZeCO, arXiv 2507.01004, whose time is in
/// proportion to devices + slices - 1). `launches`: what each does for a slice beside sending it.
inline double handing_seconds(const machine& m, const device_group& g, const handed& h, double bytes, int launches) {
  const detail::reach at(m, g);
  detail::hop way;
  for (std::size_t l = at.first; l <= at.last; ++l) way.over(m.levels[l], m.levels[l].bandwidth * g.share[l]);
  if (!h.how.sums) return m.device.launch + way.seconds(bytes);
  const auto slices = static_cast<double>(h.slices());
  return (h.ranks + slices - 2) * ((2 + launches) * m.device.launch + way.seconds(bytes / slices));
}

}  // namespace cfp
