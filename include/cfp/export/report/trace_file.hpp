// A plan's timeline as a trace: what Perfetto and chrome://tracing open.
#pragma once

#include <cfp/export/report/report_view.hpp>
#include <cfp/file/new_file.hpp>

#include <nlohmann/json.hpp>

#include <cstddef>
#include <string>

namespace cfp::inline v0_1 {

/// A process for each place, a thread for each of its streams, its memory as a counter; times in microseconds.
inline nlohmann::ordered_json trace_of(const report_view& v) {
  using json = nlohmann::ordered_json;
  json events = json::array();
  const auto called = [&](const char* what, std::size_t place, std::size_t lane, const std::string& says) {
    events.push_back({{"name", what}, {"ph", "M"}, {"pid", place}, {"tid", lane}, {"args", {{"name", says}}}});
  };
  for (std::size_t p = 0; p < v.places.size(); ++p) {
    const report_view::place& at = v.places[p];
    called("process_name", p, 0, at.label);
    for (std::size_t l = 0; l < at.lanes.size(); ++l) {
      called("thread_name", p, l, at.lanes[l].label);
      for (const report_view::work& w : at.lanes[l].done) {
        json args{{"phase", report_phases[w.when]}};
        if (v.passes > 1) args["micro_batch"] = w.pass;
        if (w.decision >= 0) {
          const report_view::decision& d = v.decisions[static_cast<std::size_t>(w.decision)];
          args["decision"] = d.label, args["choice"] = d.choice;
        }
        events.push_back({{"name", v.names[static_cast<std::size_t>(w.name)]},
                          {"cat", report_phases[w.when]},
                          {"ph", "X"},
                          {"ts", 1000 * w.begin},
                          {"dur", 1000 * (w.end - w.begin)},
                          {"pid", p},
                          {"tid", l},
                          {"args", std::move(args)}});
      }
    }
    if (v.memory_axis != "ms") continue;
    for (const report_view::memory_point& m : at.memory) {
      json bytes;
      for (std::size_t k = 0; k < m.bytes.size(); ++k) bytes[v.memory_kinds[k]] = m.bytes[k];
      events.push_back({{"name", "memory, bytes"}, {"ph", "C"}, {"ts", 1000 * m.at}, {"pid", p}, {"args", bytes}});
    }
  }
  return {{"displayTimeUnit", "ms"},
          {"otherData", {{"model", v.model}, {"mesh", v.mesh}, {"predicted_ms", v.predicted_ms}}},
          {"traceEvents", std::move(events)}};
}

/// Throws bad_input where it cannot be written.
inline void write_trace(const report_view& v, const std::string& path) { write_file(path, trace_of(v).dump()); }

}  // namespace cfp
