// Whether the figures of a machine can be; a mistake is refused by name.
#pragma once

#include <cfp/core/bad_input.hpp>
#include <cfp/profile/machine/collective_time.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>
#include <string>
#include <string_view>

namespace cfp::inline v0_1 {

/// One sentence: which machine, which entry, its value and what it must be.
struct invalid_machine : bad_input {
  using bad_input::bad_input;
};

namespace detail {

inline constexpr std::array<std::string_view, 4> interconnect_names = {"plain", "nvlink", "pcie", "network"},
                                                 generation_names = {"volta", "ampere", "hopper", "blackwell"};

inline std::string spelled(double x) {
  return x == std::floor(x) && std::abs(x) < 1e15 ? std::to_string(static_cast<long>(x)) : nlohmann::json(x).dump();
}

/// Asks every figure of a machine in turn.
struct machine_check {
  const machine& m;

  [[noreturn]] void refuse(const std::string& why) const { throw invalid_machine(m.name + ": " + why); }
  void must(bool holds, const std::string& entry, double is, const char* what) const {
    if (!holds)
      refuse(entry + " must be " + what + ", got: " +
             (std::isnan(is)   ? "nan"
              : std::isinf(is) ? "inf"
                               : detail::spelled(is)));
  }
  void positive(const std::string& entry, double x) const {
    must(x > 0 && std::isfinite(x), entry, x, "a positive number");
  }
  void not_negative(const std::string& entry, double x) const {
    must(x >= 0 && std::isfinite(x), entry, x, "a number that is not negative");
  }

  void device() const {
    const device_type& d = m.device;
    if (m.name.empty() || d.name.empty())
      refuse(std::string(m.name.empty() ? "" : "device.") + "name must not be empty");
    if (d.product_rate.empty()) refuse("device.product_rate must have at least one type");
    for (const auto& [type, rate] : d.product_rate) positive("device.product_rate." + type, rate);
    if (!d.weight_products.empty() && !d.product_rate.contains(d.weight_products))
      refuse("device.weight_products must be a type of device.product_rate, got '" + d.weight_products + "'");
    positive("device.bandwidth", d.bandwidth);
    positive("device.memory", static_cast<double>(d.memory));
    must(
        d.host_bandwidth == 0 || (d.host_bandwidth >= 1e6 && d.host_bandwidth <= d.bandwidth), "device.host_bandwidth",
        d.host_bandwidth,
        ("0 (nothing may rest there) or from 1e6 bytes per second to device.bandwidth, " + detail::spelled(d.bandwidth))
            .c_str());
    must(d.launch >= 0 && d.launch <= 1, "device.launch", d.launch, "from 0 to 1 second");
    must(d.hand_over >= 0 && d.hand_over <= 1, "device.hand_over", d.hand_over, "from 0 to 1 second");
    positive("device.processors", d.processors);
    must(d.tile >= 1 && d.tile == std::floor(d.tile), "device.tile", d.tile, "a whole number, 1 or more");
    must(d.tile_depth >= 1 && d.tile_depth == std::floor(d.tile_depth), "device.tile_depth", d.tile_depth,
         "a whole number, 1 or more");
    must(d.contention >= 1 && d.contention <= 2, "device.contention", d.contention,
         "from 1 (none) to 2 (one stands still while the other runs)");
  }

  void levels() const {
    if (m.levels.empty()) refuse("levels must have at least one entry");
    long devices = 1;
    for (std::size_t l = 0; l < m.levels.size(); ++l) {
      const interconnect& i = m.levels[l];
      const std::string entry = "levels." + i.name;
      for (std::size_t k = 0; k < l; ++k)
        if (m.levels[k].name == i.name) refuse("two levels are called '" + i.name + "'");
      must(i.joins >= 1 && i.joins <= 1 << 20, entry + ".joins", i.joins, "a whole number of groups, 1 or more");
      devices *= i.joins;
      if (devices > 1 << 20) refuse("levels join more than 1048576 devices");
      positive(entry + ".bandwidth", i.bandwidth);
      not_negative(entry + ".latency", i.latency);
      positive(entry + ".channels", i.channels);
      not_negative(entry + ".switch_reduction", i.switch_reduction);
      if (i.switch_reduction > 0 && (i.kind != interconnect::nvlink || m.chips < generation::hopper))
        refuse(entry + ".switch_reduction contradicts " +
               (i.kind != interconnect::nvlink ? "its kind: only nvlink's" : "chips: only hopper's and later") +
               " switches add up");
      if (i.switch_reduction > i.bandwidth)
        refuse(entry + ".switch_reduction " + detail::spelled(i.switch_reduction) + " contradicts its bandwidth " +
               detail::spelled(i.bandwidth));
      if (l > 0 && i.kind != interconnect::network && m.levels[l - 1].kind == interconnect::network)
        refuse(entry + " is of kind " + std::string(detail::interconnect_names[i.kind]) +
               " but joins what a network joins; levels go from the inside out");
    }
  }

  void sweep(const collective_sweep& w, const std::string& entry) const {
    must(w.devices >= 2 && w.devices <= m.devices(), entry + ".devices", w.devices,
         ("from 2 to the " + std::to_string(m.devices()) + " devices of the machine").c_str());
    long nodes = 1;
    for (const interconnect& i : m.levels)
      if (i.kind == interconnect::network) nodes *= i.joins;
    must(w.nodes >= 1 && w.nodes <= nodes && w.devices % w.nodes == 0 && w.devices / w.nodes <= m.devices() / nodes,
         entry + ".nodes", w.nodes,
         ("a divisor of its " + std::to_string(w.devices) + " devices that the machine's " + std::to_string(nodes) +
          " nodes allow")
             .c_str());
    must(w.at_once >= 1 && static_cast<long>(w.at_once) * w.devices / w.nodes <= m.devices() / nodes,
         entry + ".at_once", w.at_once, "as many such groups as a node has devices for, 1 or more");
    if (w.points.empty()) refuse(entry + ".points must have at least one [bytes, seconds]");
    for (std::size_t p = 0; p < w.points.size(); ++p) {
      const std::string point = entry + ".points[" + std::to_string(p) + "]";
      positive(point + "[0]", w.points[p].first);
      positive(point + "[1]", w.points[p].second);
      if (p > 0 && w.points[p].first <= w.points[p - 1].first)
        refuse(point + " must have more bytes than the one before");
    }
    const double sent = static_cast<double>(bytes_sent(w.kind, 1 << 30, w.devices)) / (1 << 30) *
                        w.points.back().first * (w.kind == collective_kind::all_to_all ? w.devices : 1) * w.at_once;
    double most = 0;  // what any level could carry: on two nodes a tree, and a switch, need half of it
    for (const interconnect& i : m.levels) most = std::max({most, 2 * i.bandwidth, 2 * i.switch_reduction});
    if (w.points.back().second * most < sent)
      refuse(entry + " contradicts levels: it sends " +
             detail::spelled(std::round(std::min(sent / w.points.back().second, 1e300) / 1e8) / 10) +
             " GB/s, twice what any level carries");
  }
};

}  // namespace detail

/// Throws `invalid_machine` unless every figure can be, and none contradicts another.
inline void validate(const machine& m) {
  const detail::machine_check check{m};
  check.device();
  check.levels();
  for (std::size_t s = 0; s < m.sweeps.size(); ++s) check.sweep(m.sweeps[s], "sweeps[" + std::to_string(s) + "]");
}

}  // namespace cfp
