// What a measured step is made of, as a report shows it: segments as they were run whole, each shared out among its
// parts as these took by themselves.
#pragma once

#include <cfp/export/report/report_view.hpp>
#include <cfp/session/report_memory.hpp>
#include <cfp/session/report_rows.hpp>
#include <cfp/solve/cost_graph.hpp>

#include <cstddef>
#include <string>
#include <vector>

namespace cfp::inline v0_1::detail {

class measured_lanes {
 public:
  /// They must outlive this.
  measured_lanes(const cost_graph& costs, const decision_graph& d, const report_rows& rows, const plan& p)
      : costs_(costs), d_(d), rows_(rows), p_(p) {}

  void put(report_view& out) {
    out.in_order = false;
    out.places.push_back({"each rank", 0, {{"parts", {}}, {"conversions", {}}}});
    out_ = &out;
    for (std::size_t s = 0; s < p_.segment_ms.size(); ++s) {
      const double parts = rows_.shares().parts(p_, s, costs_);
      scale_ = parts > 0 ? p_.segment_ms[s] / parts : 1;
      for (std::size_t n = 0; n < d_.nodes.size(); ++n)
        if (rows_.shares().of(static_cast<int>(n)) == static_cast<int>(s)) put_node(n);
      if (!(parts > 0)) put_work(0, -1, p_.segment_ms[s], "segment " + std::to_string(s));
    }
  }

 private:
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }
  void put_node(std::size_t n) {
    const int row = rows_.row_of(n), mine = rows_.shares().of(static_cast<int>(n));
    for (const cost_edge& e : costs_.edges) {
      if (e.to != static_cast<int>(n)) continue;
      const double ms = e.time[at(p_.choices[at(e.from)]) * costs_.nodes[n].time.size() + at(p_.choices[n])];
      const bool inside = rows_.shares().of(e.from) == mine;
      put_work(1, row, inside ? scale_ * ms : ms, "to " + d_.nodes[n].label + " from " + d_.nodes[at(e.from)].label);
    }
    put_work(0, row, scale_ * costs_.nodes[n].time[at(p_.choices[n])], d_.nodes[n].label);
  }
  void put_work(std::size_t lane, int row, double ms, const std::string& name) {
    if (!(ms > 0)) return;
    report_view::place& to = out_->places.back();
    to.lanes[lane].done.push_back({now_, now_ + ms, static_cast<int>(out_->names.size()), row});
    out_->names.push_back(name);
    now_ += ms;
    if (lane == 0) to.busy_ms += ms;
    if (row < 0) {
      out_->unowned_ms += ms;
      return;
    }
    report_view::decision& d = out_->decisions[at(row)];
    (lane == 0 ? d.operators_ms : d.collectives_ms) += ms;
  }

  const cost_graph& costs_;
  const decision_graph& d_;
  const report_rows& rows_;
  const plan& p_;
  report_view* out_ = nullptr;
  double scale_ = 1, now_ = 0;
};

/// Memory of a rank from one instruction to the next, of a step without a clock.
inline void put_memory_in_order(const program& p, const graph& g, long beside, report_view& out) {
  std::vector<stream_events::arrival> came;
  for (std::size_t i = 0; i < p.code.size(); ++i) came.push_back({static_cast<int>(i), static_cast<double>(i)});
  out.memory_axis = "instructions";
  out.memory_kinds.assign(memory_kind_names.begin(), memory_kind_names.end());
  out.places.back().peak_bytes = p.arena_bytes + p.persistent_bytes() + beside;
  out.places.back().memory = memory_over_step(memory_by_kind(p, g, beside), came, static_cast<double>(p.code.size()));
}

}  // namespace cfp::inline v0_1::detail
