// Machines as JSON files that people read, correct and extend; a mistake is refused by name.
#pragma once

#include <cfp/file/json_reader.hpp>
#include <cfp/file/whole_file.hpp>
#include <cfp/profile/machine/machine_check.hpp>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace cfp::inline v0_1 {

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
    for (const json& l : array(member(all, "the file", "levels"), "levels"))
      out.levels.push_back(level(l, "levels[" + std::to_string(out.levels.size()) + "]"));
    if (const auto sweeps = all.find("sweeps"); sweeps != all.end())
      for (const json& s : array(*sweeps, "sweeps"))
        out.sweeps.push_back(sweep(s, "sweeps[" + std::to_string(out.sweeps.size()) + "]"));
    if (const auto sources = all.find("sources"); sources != all.end()) {
      if (!sources->is_object()) refuse("sources must be an object, got " + shown(*sources));
      for (const auto& [entry, source] : sources->items()) out.sources[entry] = text(source, "sources." + entry);
    }
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
    if (!value.is_number()) refuse(owner + " must be a number, got " + shown(value));
    return value.get<double>();
  }
  double number(const json& object, const std::string& owner, const char* key) const {
    return number(member(object, owner, key), owner + "." + key);
  }
  double number(const json& object, const std::string& owner, const char* key, double otherwise) const {
    return object.contains(key) ? number(object, owner, key) : otherwise;
  }
  long whole(const json& object, const std::string& owner, const char* key) const {
    const json& value = member(object, owner, key);
    if (!value.is_number_integer() || !(std::abs(value.get<double>()) < 1e15))
      refuse(owner + "." + key + " must be a whole number, got " + shown(value));
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
    only(value, at,
         {"name", "product_rate", "weight_products", "bandwidth", "memory", "host_bandwidth", "launch", "hand_over",
          "processors", "tile", "tile_depth", "contention"},
         who);
    device_type out;
    out.name = text(member(value, at, "name"), at + ".name");
    out.product_rate.clear();
    const json& rates = member(value, at, "product_rate");
    only(rates, at + ".product_rate", {"float32", "bfloat16", "float64", "float8"}, who);
    for (const auto& [type, rate] : rates.items()) out.product_rate[type] = number(rate, at + ".product_rate." + type);
    if (value.contains("weight_products"))
      out.weight_products = text(value["weight_products"], at + ".weight_products");
    out.bandwidth = number(value, at, "bandwidth");
    out.memory = whole(value, at, "memory");
    out.host_bandwidth = number(value, at, "host_bandwidth", out.host_bandwidth);
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
    if (out.kind != interconnect::plain || value.contains("channels")) out.channels = count(value, at, "channels");
    out.switch_reduction = number(value, at, "switch_reduction", 0);
    return out;
  }

  collective_sweep sweep(const json& value, const std::string& at) const {
    only(value, at, {"collective", "devices", "nodes", "at_once", "source", "points"}, who);
    collective_sweep out;
    static constexpr auto swept = [] {  // nothing is corrected by what goes between two
      std::array<std::string_view, static_cast<std::size_t>(collective_kind::shift)> names;
      std::copy_n(collective_names.begin(), names.size(), names.begin());
      return names;
    }();
    out.kind = static_cast<collective_kind>(one_of(member(value, at, "collective"), at + ".collective", swept));
    out.devices = count(value, at, "devices");
    out.nodes = count(value, at, "nodes");
    if (value.contains("at_once")) out.at_once = count(value, at, "at_once");
    out.source = text(member(value, at, "source"), at + ".source");
    for (const json& p : array(member(value, at, "points"), at + ".points")) {
      const std::string point = at + ".points[" + std::to_string(out.points.size()) + "]";
      if (array(p, point).size() != 2)
        refuse(point + " must be [bytes, seconds], got an array of " + std::to_string(p.size()));
      out.points.emplace_back(number(p[0], point + "[0]"), number(p[1], point + "[1]"));
    }
    return out;
  }
};

}  // namespace detail

/// A machine from JSON text (`examples/machines`, docs/9_machines.md). Throws `invalid_machine`, whose sentence begins
/// with `where`.
inline machine read_machine(std::string_view text, std::string where = "machine") {
  return detail::machine_reader(text, std::move(where)).run();
}

/// The machine of a file.
CFP_INLINE machine load_machine(const std::string& path) {
  const std::optional<std::string> text = detail::whole_file(path);
  if (!text) throw invalid_machine(path + ": cannot be read");
  return read_machine(*text, path);
}

}  // namespace cfp
