// What NCCL expects of its own collectives: of every algorithm and protocol a latency and a bandwidth, of which the
// fastest is taken. Constants and formulas are those of NCCL 2.28 (src/graph/tuning.cc, topo.h).
#pragma once

#include <cfp/core/collective.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace cfp::inline v0_1 {

/// NCCL's constants differ by this.
enum class generation { volta, ampere, hopper, blackwell };

/// The ranks of a communicator. Bandwidths in bytes per second, of all channels together.
struct nccl_ranks {
  int devices = 1, nodes = 1;
  generation chips = generation::ampere;
  bool nvlink = true;  ///< within a node, or PCIe
  int channels = 1;
  double inside = 0;     ///< bandwidth of a ring within a node
  double network = 0;    ///< bandwidth of a node to the others
  double in_switch = 0;  ///< bandwidth at which switches add up an all-reduce of a node (NVLS), or 0
};

namespace detail {

struct nccl_tables {
  enum { ll, ll128, simple };
  static constexpr double base_tree[] = {6.8, 14, 8.4}, base_ring[] = {6.6, 14, 8.4};
  static constexpr double nvlink_tree[] = {.6, 1.25, 4}, nvlink_ring[] = {.6, 1.9, 3.4};
  static constexpr double pcie_tree[] = {1, 1.9, 4}, pcie_ring[] = {1, 2.5, 5.7};
  static constexpr double network_tree[] = {5, 8.5, 14}, network_ring[] = {2.7, 4, 14};
  static constexpr double nvls = 25, nvls_network = 14;
  // By generation; then on one node, on two, on more. GB/s.
  static constexpr double most_ll[][3] = {{39, 39, 20.4}, {87.7, 22.5, 19}, {141, 45, 35}, {282, 90, 70}};
  static constexpr double ring_ll128[] = {20, 20, 36.7, 73.4};  // per channel, as the next two
  static constexpr double tree[][3] = {{26.5, 18.5, 10}, {24, 23.6, 17.8}, {38.7, 41.4, 36}, {70, 42.8, 24}};
  static constexpr double tree_ll128[][3] = {{20, 20, 20}, {20, 20, 20}, {36.7, 36.7, 29}, {55.6, 31.67, 20}};
  // What a tree attains of its bandwidth, by the size: 64 bytes, 128, 256, ...
  static constexpr double tree_attains[3][23] = {
      {1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1, 1},
      {1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1, 1},
      {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9}};
};

}  // namespace detail

/// Seconds of a collective, without its launch. `bytes` as nccl-tests counts them: an all-reduce's buffer, of a gather
/// or scatter the whole, of an all-to-all what one rank holds.
inline double nccl_seconds(collective_kind kind, double bytes, const nccl_ranks& r) {
  using t = detail::nccl_tables;
  if (r.devices == 1) return 0;
  const int n = r.devices, per_node = n / r.nodes;
  const std::size_t chips = static_cast<std::size_t>(r.chips), nodes = r.nodes == 1 ? 0 : r.nodes == 2 ? 1 : 2;
  const double ring = std::min(per_node > 1 ? r.inside : std::numeric_limits<double>::infinity(),
                               r.nodes > 1 ? r.network : std::numeric_limits<double>::infinity()) /
                      1e9;
  if (kind == collective_kind::all_to_all) {  // every pair at once: what leaves a device, and what leaves a node
    const double out = bytes / n;
    const double inside = per_node > 1 ? out * (n - 1) / r.inside : 0;
    const double network = r.nodes > 1 ? out * per_node * (n - per_node) / r.network : 0;
    return 1e-6 * (t::base_ring[t::simple] + (r.nodes > 1 ? t::network_ring[t::simple]
                                              : r.nvlink  ? t::nvlink_ring[t::simple]
                                                          : t::pcie_ring[t::simple])) +
           std::max(inside, network);
  }
  const bool reduces = kind == collective_kind::all_reduce;
  const int steps = reduces ? 2 * (n - 1) : n - 1, between = (reduces ? 2 : 1) * (r.nodes - 1);
  double best = std::numeric_limits<double>::infinity();  // microseconds
  const auto offer = [&](double latency, double gigabytes) {
    if (gigabytes > 0) best = std::min(best, latency + bytes / (1000 * gigabytes));
  };
  for (const int protocol : {t::ll, t::ll128, t::simple}) {
    if (protocol == t::ll128 && !r.nvlink) continue;
    double bandwidth = ring;
    if (protocol == t::ll) bandwidth = std::min(t::most_ll[chips][nodes], .5 * ring);
    if (protocol == t::ll128) bandwidth = std::min(.92 * ring, r.channels * t::ring_ll128[chips]);
    const double hop = (r.nvlink ? t::nvlink_ring : t::pcie_ring)[protocol],
                 far = (per_node == 1 ? t::network_tree : t::network_ring)[protocol];
    const double here = r.nodes > 1 ? std::max(hop, protocol == t::simple ? 3.0 : 1.0) : hop;
    double latency = t::base_ring[protocol] + (steps - between) * here + between * far;
    if (reduces && protocol == t::simple && r.nodes > 1 && bytes / (r.channels * n) >= 64)
      latency *= r.chips == generation::volta ? 1.9 : 1.4;
    offer(latency, bandwidth * n / steps);
    if (!reduces) continue;
    // Over two nodes a tree sends half of what a ring does through the network.
    double up = r.nodes == 2 ? std::min(per_node > 1 ? r.inside / 1e9 : std::numeric_limits<double>::infinity(),
                                        2 * r.network / 1e9)
                             : ring;
    up = std::min(.92 * up, r.channels * t::tree[chips][nodes]);
    if (protocol == t::ll) up = std::min(up / 3.8, t::most_ll[chips][nodes]);
    if (protocol == t::ll128)
      up = std::min(up * (r.nodes == 1 ? 7.0 / 9 : 120.0 / 128), r.channels * t::tree_ll128[chips][nodes]);
    if (r.chips >= generation::hopper) up *= .85;
    if (const double size = std::floor(std::log2(bytes / 64)); size >= 0 && size < 23)
      up *= t::tree_attains[protocol][static_cast<std::size_t>(size)];
    offer(t::base_tree[protocol] + 2 * ((per_node - 1) * (r.nvlink ? t::nvlink_tree : t::pcie_tree)[protocol] +
                                        std::log2(r.nodes) * t::network_tree[protocol]),
          .5 * up);
  }
  if (reduces && r.in_switch > 0) {  // over several nodes a tree of them
    if (r.nodes == 1) offer(t::nvls, r.in_switch / 1e9);
    else if (per_node > 1)
      offer(t::nvls + 2 * std::log2(r.nodes) * t::nvls_network,
            std::min(r.in_switch, r.network / (r.nodes == 2 ? 1 : 2)) / 1e9);
  }
  return 1e-6 * best;
}

}  // namespace cfp
