// Machines written as the files that `load_machine` reads.
#pragma once

#include <cfp/file/new_file.hpp>
#include <cfp/profile/machine/machine_file.hpp>

#include <nlohmann/json.hpp>

#include <cmath>
#include <string>

namespace cfp::inline v0_1 {

namespace detail {

using ordered = nlohmann::ordered_json;

inline ordered json_of(const device_type& d) {
  ordered rates = ordered::object();
  for (const auto& [type, rate] : d.product_rate) rates[type] = rate;
  ordered out{{"name", d.name}, {"product_rate", rates}};
  if (!d.weight_products.empty()) out["weight_products"] = d.weight_products;
  out.update({{"bandwidth", d.bandwidth},
              {"memory", d.memory},
              {"host_bandwidth", d.host_bandwidth},
              {"launch", d.launch},
              {"hand_over", d.hand_over},
              {"processors", d.processors},
              {"tile", d.tile},
              {"tile_depth", d.tile_depth},
              {"contention", d.contention}});
  return out;
}

inline ordered json_of(const interconnect& l) {
  ordered out{{"name", l.name}, {"kind", interconnect_names[l.kind]}, {"joins", l.joins}, {"bandwidth", l.bandwidth}};
  if (l.latency > 0) out["latency"] = l.latency;
  out["channels"] = l.channels;
  if (l.switch_reduction > 0) out["switch_reduction"] = l.switch_reduction;
  return out;
}

inline ordered json_of(const collective_sweep& s) {
  ordered points = ordered::array();
  for (const auto& [bytes, seconds] : s.points) {
    const bool whole = bytes == std::floor(bytes) && bytes < 1e15;
    points.push_back({whole ? ordered(static_cast<long>(bytes)) : ordered(bytes), seconds});
  }
  ordered out{
      {"collective", collective_names[static_cast<std::size_t>(s.kind)]}, {"devices", s.devices}, {"nodes", s.nodes}};
  if (s.at_once > 1) out["at_once"] = s.at_once;
  out["source"] = s.source;
  out["points"] = std::move(points);
  return out;
}

// Each list of numbers in a line of its own, for people to read.
inline std::string with_short_lists(const std::string& text) {
  std::string out;
  bool quoted = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (quoted && c == '\\') out += text[at++];
    else if (c == '"') quoted = !quoted;
    const std::size_t end = c == '[' && !quoted ? text.find_first_of("]{[\"", at + 1) : std::string::npos;
    if (end == std::string::npos || text[end] != ']') {
      out += text[at];
      continue;
    }
    for (; at <= end; ++at)
      if (text[at] == ',') out += ", ";
      else if (text[at] != '\n' && text[at] != ' ') out += text[at];
    --at;
  }
  return out;
}

}  // namespace detail

/// A machine as JSON text, of which `read_machine` makes the same machine again. Throws `invalid_machine` for one that
/// would be refused.
inline std::string machine_text(const machine& m) {
  detail::ordered out{{"name", m.name},
                      {"device", detail::json_of(m.device)},
                      {"chips", detail::generation_names[static_cast<std::size_t>(m.chips)]},
                      {"levels", detail::ordered::array()},
                      {"sweeps", detail::ordered::array()},
                      {"sources", m.sources}};
  for (const interconnect& l : m.levels) out["levels"].push_back(detail::json_of(l));
  for (const collective_sweep& s : m.sweeps) out["sweeps"].push_back(detail::json_of(s));
  validate(m);
  std::string text = detail::with_short_lists(out.dump(1, ' ', false, nlohmann::json::error_handler_t::replace));
  read_machine(text, m.name);
  return text;
}

/// Writes a machine's file beside `path`, then gives it its name. Throws `invalid_machine`, and bad_input where nothing
/// can be written.
inline void write_machine(const machine& m, const std::string& path) { write_file(path, machine_text(m)); }

}  // namespace cfp
