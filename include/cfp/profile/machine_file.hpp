// Machines as JSON files that people read, correct and extend; a mistake is refused by name.
#pragma once

#include <cfp/profile/collective_time.hpp>
#include <cfp/solve/json_reader.hpp>

#include <filesystem>
#include <fstream>
#include <iterator>

namespace cfp::inline v0_1 {

/// One sentence: which machine, which entry, its value and what it must be.
struct invalid_machine : std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};

namespace detail {

inline constexpr std::array<std::string_view, 4> interconnect_names = {"plain", "nvlink", "pcie", "network"}, generation_names = {"volta", "ampere", "hopper", "blackwell"};

inline std::string spelled(double x) { return x == std::floor(x) && std::abs(x) < 1e15 ? std::to_string(static_cast<long>(x)) : nlohmann::json(x).dump(); }

}  // namespace detail

/// Throws `invalid_machine` unless every figure can be, and none contradicts another.
inline void validate(const machine& m) {
  const auto refuse = [&](const std::string& why) { throw invalid_machine(m.name + ": " + why); };
  const auto must = [&](bool holds, const std::string& entry, double is, const char* what) {
    if (!holds) refuse(entry + " must be " + what + ", got: " + (std::isnan(is) ? "nan" : std::isinf(is) ? "inf" : detail::spelled(is)));
  };
  const auto positive = [&](const std::string& entry, double x) { must(x > 0 && std::isfinite(x), entry, x, "a positive number"); };
  const auto not_negative = [&](const std::string& entry, double x) { must(x >= 0 && std::isfinite(x), entry, x, "a number that is not negative"); };
  const device_type& d = m.device;
  if (d.product_rate.empty()) refuse("device.product_rate must have at least one type");
  for (const auto& [type, rate] : d.product_rate) positive("device.product_rate." + type, rate);
  positive("device.bandwidth", d.bandwidth);
  positive("device.memory", static_cast<double>(d.memory));
  not_negative("device.launch", d.launch);
  not_negative("device.hand_over", d.hand_over);
  positive("device.processors", d.processors);
  positive("device.tile", d.tile);
  positive("device.tile_depth", d.tile_depth);
  must(d.contention >= 1 && d.contention <= 2, "device.contention", d.contention, "from 1 (none) to 2 (one stands still while the other runs)");
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
      refuse(entry + ".switch_reduction contradicts " + (i.kind != interconnect::nvlink ? "its kind: only nvlink's" : "chips: only hopper's and later") + " switches add up");
    if (i.switch_reduction > i.bandwidth) refuse(entry + ".switch_reduction " + detail::spelled(i.switch_reduction) + " contradicts its bandwidth " + detail::spelled(i.bandwidth));
    if (l > 0 && i.kind != interconnect::network && m.levels[l - 1].kind == interconnect::network)
      refuse(entry + " is of kind " + std::string(detail::interconnect_names[i.kind]) + " but joins what a network joins; levels go from the inside out");
  }
  for (std::size_t s = 0; s < m.sweeps.size(); ++s) {
    const collective_sweep& w = m.sweeps[s];
    const std::string entry = "sweeps[" + std::to_string(s) + "]";
    must(w.devices >= 2 && w.devices <= m.devices(), entry + ".devices", w.devices, ("from 2 to the " + std::to_string(m.devices()) + " devices of the machine").c_str());
    long nodes = 1;
    for (const interconnect& i : m.levels)
      if (i.kind == interconnect::network) nodes *= i.joins;
    must(w.nodes >= 1 && w.nodes <= nodes && w.devices % w.nodes == 0 && w.devices / w.nodes <= m.devices() / nodes, entry + ".nodes", w.nodes,
         ("a divisor of its " + std::to_string(w.devices) + " devices that the machine's " + std::to_string(nodes) + " nodes allow").c_str());
    if (w.points.empty()) refuse(entry + ".points must have at least one [bytes, seconds]");
    for (std::size_t p = 0; p < w.points.size(); ++p) {
      const std::string point = entry + ".points[" + std::to_string(p) + "]";
      positive(point + "[0]", w.points[p].first);
      positive(point + "[1]", w.points[p].second);
      if (p > 0 && w.points[p].first <= w.points[p - 1].first) refuse(point + " must have more bytes than the one before");
    }
    const double sent = static_cast<double>(bytes_sent(w.kind, 1 << 30, w.devices)) / (1 << 30) * w.points.back().first * (w.kind == collective_kind::all_to_all ? w.devices : 1);
    double most = 0;  // what any level could carry: on two nodes a tree, and a switch, need half of it
    for (const interconnect& i : m.levels) most = std::max({most, 2 * i.bandwidth, 2 * i.switch_reduction});
    if (w.points.back().second * most < sent)
      refuse(entry + " contradicts levels: it sends " + detail::spelled(std::round(sent / w.points.back().second / 1e8) / 10) + " GB/s, twice what any level carries");
  }
}

namespace detail {

class machine_reader : json_reader<invalid_machine> {
 public:
  using json_reader::json_reader;

  machine run() {
    const json all = parsed();
    only(all, "the file", {"name", "device", "chips", "levels", "sweeps", "sources"}, who);
    machine out;
    out.name = text(member(all, "the file", "name"), "name");
    out.chips = static_cast<generation>(one_of(member(all, "the file", "chips"), "chips", generation_names));
    out.device = device(member(all, "the file", "device"));
    for (const json& l : array(member(all, "the file", "levels"), "levels")) out.levels.push_back(level(l, "levels[" + std::to_string(out.levels.size()) + "]"));
    if (const auto sweeps = all.find("sweeps"); sweeps != all.end())
      for (const json& s : array(*sweeps, "sweeps")) out.sweeps.push_back(sweep(s, "sweeps[" + std::to_string(out.sweeps.size()) + "]"));
    if (const auto sources = all.find("sources"); sources != all.end())
      for (const auto& [entry, source] : sources->items()) text(source, "sources." + entry);
    try {
      validate(out);
    } catch (const invalid_machine& e) {
      refuse(e.what());
    }
    return out;
  }

 private:
  static constexpr const char* who = "machines";

  double number(const json& value, const std::string& owner) const {
    if (!value.is_number()) refuse(owner + " must be a number, got " + value.dump());
    return value.get<double>();
  }
  double number(const json& object, const std::string& owner, const char* key) const { return number(member(object, owner, key), owner + "." + key); }
  double number(const json& object, const std::string& owner, const char* key, double otherwise) const {
    return object.contains(key) ? number(object, owner, key) : otherwise;
  }
  long whole(const json& object, const std::string& owner, const char* key) const {
    const json& value = member(object, owner, key);
    if (!value.is_number_integer() || !(std::abs(value.get<double>()) < 1e15)) refuse(owner + "." + key + " must be a whole number, got " + value.dump());
    return value.get<long>();
  }
  int count(const json& object, const std::string& owner, const char* key) const {
    const long n = whole(object, owner, key);
    if (n < 1 || n > 1 << 20) refuse(owner + "." + key + " must be from 1 to 1048576, got: " + std::to_string(n));
    return static_cast<int>(n);
  }
  template <std::size_t N>
  std::size_t one_of(const json& value, const std::string& owner, const std::array<std::string_view, N>& names) const {
    const std::string word = text(value, owner);
    std::string all;
    for (std::size_t i = 0; i < N; ++i) {
      if (names[i] == word) return i;
      all.append(i ? ", " : "").append(names[i]);
    }
    refuse(owner + " must be one of " + all + ", got '" + word + "'");
  }

  device_type device(const json& value) const {
    const std::string at = "device";
    only(value, at, {"name", "product_rate", "bandwidth", "memory", "launch", "hand_over", "processors", "tile", "tile_depth", "contention"}, who);
    device_type out;
    out.name = text(member(value, at, "name"), at + ".name");
    out.product_rate.clear();
    const json& rates = member(value, at, "product_rate");
    only(rates, at + ".product_rate", {"float32", "bfloat16", "float64"}, who);
    for (const auto& [type, rate] : rates.items()) out.product_rate[type] = number(rate, at + ".product_rate." + type);
    out.bandwidth = number(value, at, "bandwidth");
    out.memory = whole(value, at, "memory");
    out.launch = number(value, at, "launch");
    out.hand_over = number(value, at, "hand_over", out.hand_over);
    if (value.contains("processors")) out.processors = count(value, at, "processors");
    out.tile = number(value, at, "tile", out.tile);
    out.tile_depth = number(value, at, "tile_depth", out.tile_depth);
    out.contention = number(value, at, "contention", out.contention);
    return out;
  }

  interconnect level(const json& value, const std::string& at) const {
    only(value, at, {"name", "kind", "joins", "bandwidth", "latency", "channels", "switch_reduction"}, who);
    interconnect out;
    out.name = text(member(value, at, "name"), at + ".name");
    out.kind = static_cast<interconnect::kind_t>(one_of(member(value, at, "kind"), at + ".kind", interconnect_names));
    out.joins = count(value, at, "joins");
    out.bandwidth = number(value, at, "bandwidth");
    out.latency = number(value, at, "latency", 0);
    if (out.kind != interconnect::plain) out.channels = count(value, at, "channels");
    out.switch_reduction = number(value, at, "switch_reduction", 0);
    return out;
  }

  collective_sweep sweep(const json& value, const std::string& at) const {
    only(value, at, {"collective", "devices", "nodes", "source", "points"}, who);
    collective_sweep out;
    out.kind = static_cast<collective_kind>(one_of(member(value, at, "collective"), at + ".collective", collective_names));
    out.devices = count(value, at, "devices");
    out.nodes = count(value, at, "nodes");
    text(member(value, at, "source"), at + ".source");
    for (const json& p : array(member(value, at, "points"), at + ".points")) {
      const std::string point = at + ".points[" + std::to_string(out.points.size()) + "]";
      if (array(p, point).size() != 2) refuse(point + " must be [bytes, seconds], got " + p.dump());
      out.points.emplace_back(number(p[0], point + "[0]"), number(p[1], point + "[1]"));
    }
    return out;
  }
};

}  // namespace detail

/// A machine from JSON text (`examples/machines`, docs/9_machines.md). Throws `invalid_machine`, whose sentence begins with `where`.
inline machine read_machine(std::string_view text, std::string where = "machine") { return detail::machine_reader(text, std::move(where)).run(); }

/// The machine of a file.
inline machine load_machine(const std::string& path) {
  std::ifstream file(path);
  if (!file || !std::filesystem::is_regular_file(path)) throw invalid_machine(path + ": cannot be read");
  return read_machine(std::string(std::istreambuf_iterator<char>(file), {}), path);
}

}  // namespace cfp
