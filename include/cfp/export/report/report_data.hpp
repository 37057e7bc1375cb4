// The data of a report as JSON: what its page shows, and what programs read.
#pragma once

#include <cfp/export/report/report_view.hpp>

#include <nlohmann/json.hpp>

#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

namespace cfp::inline v0_1 {

namespace detail {

using report_json = nlohmann::ordered_json;

// To a tenth of a nanosecond: what is finer says nothing, and is most of a file.
inline double short_ms(double ms) { return std::round(1e7 * ms) / 1e7; }
inline report_json known_ms(double ms) { return std::isfinite(ms) ? report_json(short_ms(ms)) : report_json(nullptr); }

inline report_json to_json(const report_view::decision& d) {
  report_json j{{"label", d.label},
                {"kind", d.kind},
                {"choice", d.choice},
                {"count", d.count},
                {"choices", d.choices},
                {"segment", d.segment},
                {"operators_ms", d.operators_ms},
                {"collectives_ms", d.collectives_ms},
                {"parts_ms", d.parts_ms},
                {"edges_ms", d.edges_ms},
                {"memory_bytes", d.memory_bytes},
                {"sent_bytes", d.sent.total_bytes()},
                {"sent", report_json::object()},
                {"others", report_json::array()}};
  for (std::size_t k = 0; k < collective_names.size(); ++k)
    if (d.sent.calls[k] > 0) j["sent"][std::string(collective_names[k])] = {d.sent.calls[k], d.sent.bytes[k]};
  for (const report_view::alternative& a : d.others)
    j["others"].push_back({{"choice", a.choice},
                           {"alone_ms", known_ms(a.alone_ms)},
                           {"possible", !std::isinf(a.alone_ms)},
                           {"best_ms", known_ms(a.best_ms)},
                           {"memory_bytes", a.memory_bytes ? report_json(*a.memory_bytes) : report_json(nullptr)},
                           {"proven", a.proven}});
  return j;
}

inline report_json to_json(const report_view::segment& s) {
  report_json j{{"label", s.label}, {"count", s.count}, {"kind", s.kind}, {"stage", s.stage}, {"shared", s.shared}};
  j["blocks"] = report_json::array();
  for (const report_view::block& b : s.blocks) j["blocks"].push_back({{"label", b.label}, {"decisions", b.decisions}});
  return j;
}

// Work of one decision that follows on itself is one, where there is too much for a page; its name is -1.
inline std::vector<report_view::work> joined(const std::vector<report_view::work>& all) {
  std::vector<report_view::work> out;
  for (const report_view::work& w : all) {
    const bool follows = !out.empty() && out.back().decision == w.decision && out.back().when == w.when &&
                         out.back().pass == w.pass && w.begin - out.back().end <= 1e-9 * w.end;
    if (follows) out.back().end = w.end, out.back().name = -1;
    else out.push_back(w);
  }
  return out;
}

// A piece of work is [begin, ms, name, decision, phase, pass]: there are many.
inline report_json to_json(const report_view::place& p, bool joins) {
  report_json j{{"label", p.label},
                {"busy_ms", p.busy_ms},
                {"peak_bytes", p.peak_bytes},
                {"lanes", report_json::array()},
                {"memory", report_json::array()}};
  for (const report_view::lane& l : p.lanes) {
    report_json done = report_json::array();
    for (const report_view::work& w : joins ? joined(l.done) : l.done)
      done.push_back(report_json::array(
          {short_ms(w.begin), short_ms(w.end - w.begin), w.name, w.decision, static_cast<int>(w.when), w.pass}));
    j["lanes"].push_back({{"label", l.label}, {"work", std::move(done)}});
  }
  for (const report_view::memory_point& m : p.memory) {
    report_json one = report_json::array({short_ms(m.at)});
    for (const long bytes : m.bytes) one.push_back(bytes);
    j["memory"].push_back(std::move(one));
  }
  return j;
}

inline report_json to_json(const report_view::compared& c) {
  return {{"plan", c.plan}, {"kind", c.kind},  {"mesh", c.mesh}, {"step_ms", c.ms}, {"peak_bytes", c.peak_bytes},
          {"fits", c.fits}, {"found", c.found}};
}

inline report_json machine_json(const report_view& v) {
  report_json j{{"name", v.machine}, {"device", nullptr}, {"levels", report_json::array()}};
  if (!v.each.label.empty())
    j["device"] = {{"name", v.each.label},
                   {"memory_bytes", v.each.memory_bytes},
                   {"bandwidth", v.each.bandwidth},
                   {"host_bandwidth", v.each.host_bandwidth},
                   {"launch_us", v.each.launch_us},
                   {"contention", v.each.contention},
                   {"product_rates", report_json::object()}};
  for (const auto& [type, rate] : v.each.product_rates) j["device"]["product_rates"][type] = rate;
  for (const report_view::level& l : v.levels)
    j["levels"].push_back({{"name", l.label}, {"kind", l.kind}, {"joins", l.joins}, {"bandwidth", l.bandwidth}});
  for (const auto& [of, from] : v.sources) j["sources"][of] = from;
  return j;
}

}  // namespace detail

/// Times in milliseconds, memory in bytes; what is not known is null.
inline nlohmann::ordered_json report_data(const report_view& v) {
  nlohmann::ordered_json j{{"version", 1},
                           {"model", v.model},
                           {"mesh", v.mesh},
                           {"type", v.type},
                           {"optimizer", v.optimizer},
                           {"schedule", v.schedule},
                           {"times", v.times},
                           {"kernels", v.kernels},
                           {"notes", v.notes},
                           {"predicted_ms", v.predicted_ms},
                           {"timeline_ms", v.timeline_ms},
                           {"additive_ms", v.additive_ms},
                           {"unowned_ms", v.unowned_ms},
                           {"idle", v.idle},
                           {"predicted_peak_bytes", v.peak_bytes},
                           {"limit_bytes", v.limit_bytes},
                           {"micro_batches", v.passes},
                           {"operators", v.operators},
                           {"parameters", v.parameters},
                           {"in_order", v.in_order},
                           {"memory_axis", v.memory_axis},
                           {"machine", detail::machine_json(v)},
                           {"phases", report_phases},
                           {"names", v.names},
                           {"memory_kinds", v.memory_kinds}};
  for (const report_view::axis& a : v.axes)
    j["axes"].push_back({{"name", a.label}, {"size", a.size}, {"along", a.along}});
  const auto put = [&](const char* key, const auto& some) {
    j[key] = nlohmann::ordered_json::array();
    for (const auto& one : some) j[key].push_back(detail::to_json(one));
  };
  put("decisions", v.decisions);
  put("segments", v.segments);
  constexpr std::size_t most = 60000;  // pieces of work that are shown one by one
  std::size_t work = 0;
  for (const report_view::place& p : v.places)
    for (const report_view::lane& l : p.lanes) work += l.done.size();
  j["joined"] = work > most;
  for (const report_view::place& p : v.places) j["places"].push_back(detail::to_json(p, work > most));
  put("plans", v.plans);
  put("curve", v.curve);
  return j;
}

}  // namespace cfp
