// Fleets as JSON files; a mistake is refused by name.
#pragma once

#include <cfp/file/json_reader.hpp>
#include <cfp/profile/machine/fleet.hpp>
#include <cfp/profile/machine/machine_check.hpp>

#include <cmath>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace cfp::inline v0_1 {

namespace detail {

class fleet_reader : json_reader<invalid_machine> {
 public:
  using json_reader::json_reader;

  fleet run(const std::function<machine(const std::string&)>& machine_of) {
    const json all = parsed();
    only(all, "the file", {"name", "currency", "pools", "between", "sources"}, "fleets");
    fleet out;
    out.name = text(member(all, "the file", "name"), "name");
    out.currency = text(member(all, "the file", "currency"), "currency");
    std::set<std::string> names;
    for (const json& p : array(member(all, "the file", "pools"), "pools")) {
      out.pools.push_back(pool(p, "pools[" + std::to_string(out.pools.size()) + "]", machine_of));
      if (!names.insert(out.pools.back().name).second)
        refuse("pools name the machine '" + out.pools.back().name + "' twice; name it once, with all its devices");
    }
    if (out.pools.empty()) refuse("pools must name a machine or more");
    if (const auto between = all.find("between"); between != all.end()) out.between = links(*between);
    if (const auto sources = all.find("sources"); sources != all.end())
      for (const auto& [entry, source] : object(*sources, "sources").items())
        out.sources[entry] = text(source, "sources." + entry);
    return out;
  }

 private:
  interconnect links(const json& value) const {
    only(value, "between", {"bandwidth", "latency"}, "the links between pools");
    interconnect out;
    out.name = "between pools";
    out.bandwidth = within(member(value, "between", "bandwidth"), "between.bandwidth", "bytes per second", 1, 1e15);
    out.latency = within(member(value, "between", "latency"), "between.latency", "seconds", 0, 10);
    return out;
  }
  double within(const json& value, const std::string& owner, const std::string& unit, double least, double most) const {
    if (!value.is_number() || !(value.get<double>() >= least && value.get<double>() <= most))
      refuse(owner + " must be " + unit + " from " + text_of(least) + " to " + text_of(most) + ", got " + shown(value));
    return value.get<double>();
  }
  static std::string text_of(double x) { return json(x).dump(); }
  fleet::pool pool(const json& value, const std::string& owner,
                   const std::function<machine(const std::string&)>& machine_of) const {
    only(value, owner, {"machine", "price", "devices"}, "pools of a fleet");
    fleet::pool out;
    out.name = text(member(value, owner, "machine"), owner + ".machine");
    out.on = machine_of(out.name);
    const json& price = member(value, owner, "price");
    if (!price.is_number() || !(price.get<double>() > 0 && price.get<double>() <= 1e6))
      refuse(owner + ".price must be what a device costs in an hour, above 0 and at most 1e6, got " + shown(price));
    out.price = price.get<double>();
    const auto devices = value.find("devices");
    if (devices == value.end()) return out;
    const std::string asked = owner + ".devices " + shown(*devices);
    if (!devices->is_number_integer()) refuse(asked + ": must be a number of devices");
    try {
      const long n = devices->get<long>();
      const std::string called = out.on.name;
      out.on = part_of(out.on, n > 0 && n <= out.on.devices() ? static_cast<int>(n) : 0, asked);
      out.on.name = called;
    } catch (const bad_input& e) {
      refuse(e.what());
    }
    return out;
  }
};

}  // namespace detail

/// Reads the text of a fleet's file. `machine_of`: the machine that a pool names; what it throws goes through. Throws
/// invalid_machine, a sentence that begins with `where`.
inline fleet read_fleet(std::string_view text, const std::string& where,
                        const std::function<machine(const std::string&)>& machine_of) {
  return detail::fleet_reader(text, where).run(machine_of);
}

}  // namespace cfp
