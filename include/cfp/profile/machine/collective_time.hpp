// What a collective takes on a described machine: NCCL's model of it, or latency and bandwidth, corrected by what was
// measured there.
#pragma once

#include <cfp/core/conversion_step.hpp>
#include <cfp/profile/machine/machine.hpp>

namespace cfp::inline v0_1 {

namespace detail {

/// The levels a group of devices reaches over: the first and last of them, and where the network begins.
struct reach {
  std::size_t first = 0, last = 0, network = 0;
  reach(const machine& m, const device_group& g) {
    const auto inside = [&](std::size_t l) { return l < m.levels.size() ? g.within[l] : g.devices; };
    while (inside(first + 1) < 2) ++first;
    last = first;
    while (inside(last + 1) < g.devices) ++last;
    network = first;
    while (network <= last && m.levels[network].kind != interconnect::network) ++network;
  }
};

}  // namespace detail

/// Seconds of a collective by what is described, without its launch. `bytes` as `nccl_seconds` counts them.
inline double described_seconds(const machine& m, const device_group& g, collective_kind kind, double bytes) {
  if (g.devices == 1) return 0;
  const detail::reach at(m, g);
  double latency = 0;
  bool plain = false;
  const auto narrowest =
      [&](std::size_t from,
          std::size_t to) {  // what the group has of a level's links, of the level where that is least
        double out = std::numeric_limits<double>::infinity();
        for (std::size_t l = from; l < to; ++l) out = std::min(out, m.levels[l].bandwidth * g.share[l]);
        return out;
      };
  for (std::size_t l = at.first; l <= at.last; ++l) {
    latency = std::max(latency, m.levels[l].latency);
    plain = plain || m.levels[l].kind == interconnect::plain;
  }
  if (plain) {
    const double n = g.devices, whole = kind == collective_kind::all_to_all ? bytes * n : bytes;
    const double steps = kind == collective_kind::all_reduce   ? 2 * (n - 1) / n
                         : kind == collective_kind::all_to_all ? (n - 1) / (n * n)
                                                               : (n - 1) / n;
    return latency + steps * whole / narrowest(at.first, at.last + 1);
  }
  nccl_ranks r;
  r.devices = g.devices;
  r.chips = m.chips;
  const bool one_node = at.network > at.last;
  r.nodes = one_node ? 1 : g.nodes(at.network);
  const interconnect& slowest = m.levels[one_node ? at.last : at.network];
  r.channels = std::max(1, static_cast<int>(slowest.channels * (one_node ? 1 : g.share[at.network])));
  if (at.first < at.network) {  // several of them in a node
    const interconnect& in = m.levels[at.first];
    r.nvlink = in.kind == interconnect::nvlink;
    r.inside = narrowest(at.first, at.network);
    r.in_switch = in.switch_reduction;
  }
  if (!one_node) r.network = narrowest(at.network, at.last + 1);
  return latency + nccl_seconds(kind, bytes, r);
}

/// How many times longer than described a sweep found it: at its points as measured, between them on logarithmic
/// scales.
inline double correction_of(const collective_sweep& s, const machine& m, const device_group& g, double bytes) {
  const auto ratio = [&](const auto& point) {
    return std::log(point.second / (m.device.launch + described_seconds(m, g, s.kind, point.first)));
  };
  const auto above =
      std::lower_bound(s.points.begin(), s.points.end(), bytes, [](const auto& p, double b) { return p.first < b; });
  if (above == s.points.begin()) return std::exp(ratio(s.points.front()));
  if (above == s.points.end()) return std::exp(ratio(s.points.back()));
  const auto below = above - 1;
  const double part = std::log(bytes / below->first) / std::log(above->first / below->first);
  return std::exp((1 - part) * ratio(*below) + part * ratio(*above));
}

/// The devices of a sweep.
inline device_group group_of(const machine& m, const collective_sweep& s) {
  device_group g;
  g.devices = s.devices;
  for (std::size_t l = 0; l < m.levels.size(); ++l) {
    const bool across = m.levels[l].kind == interconnect::network;
    g.within.push_back(across ? s.devices / s.nodes : l == 0 ? 1 : std::min(m.unit(l), s.devices / s.nodes));
    g.share.push_back(across ? 1.0 / s.at_once : 1);
  }
  return g;
}

/// Seconds of a collective over an axis, its launch included. `bytes`: the tensor as held before splitting over this
/// axis. A sweep corrects the description for all groups that reach over the same levels: one of the same collective,
/// else one of an all-reduce.
inline double collective_seconds(const machine& m, const device_group& g, collective_kind kind, double bytes) {
  if (kind == collective_kind::all_to_all) bytes /= g.devices;
  const double described = m.device.launch + described_seconds(m, g, kind, bytes);
  if (g.devices == 1 || m.sweeps.empty()) return described;
  const detail::reach mine(m, g);
  const collective_sweep* best = nullptr;
  const auto worth = [&](const collective_sweep& s) {
    return 4 * (s.kind == kind) + 2 * (s.devices == g.devices) + (s.kind == collective_kind::all_reduce);
  };
  for (const collective_sweep& s : m.sweeps)
    if (detail::reach(m, group_of(m, s)).last == mine.last &&
        (s.kind == kind || s.kind == collective_kind::all_reduce) && (best == nullptr || worth(s) > worth(*best)))
      best = &s;
  return best == nullptr ? described : described * correction_of(*best, m, group_of(m, *best), bytes);
}

/// Of a step of a conversion. `bytes`: the same; of a sum that is sent compressed, what a device sends of it at first.
inline double collective_seconds(const machine& m, const device_group& g, const conversion_step& s, double bytes) {
  if (s.sent_as == compression::none) return collective_seconds(m, g, s.collective(), bytes);
  const double pieces = collective_seconds(m, g, collective_kind::all_to_all, g.devices * bytes);
  const bool all = s.kind == conversion_step::all_reduce;
  return pieces + (all ? collective_seconds(m, g, collective_kind::all_gather, bytes) : 0);
}

}  // namespace cfp
