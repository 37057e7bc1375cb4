// What the streams of a plan's programs do when, as a report shows it.
#pragma once

#include <cfp/export/report/report_view.hpp>
#include <cfp/model/read_mesh.hpp>
#include <cfp/profile/machine/stream_events.hpp>
#include <cfp/program/schedule.hpp>
#include <cfp/session/report_memory.hpp>
#include <cfp/session/report_rows.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace cfp::inline v0_1::detail {

class report_timeline {
 public:
  /// They must outlive this; what is seen is added to the decisions of `out`.
  report_timeline(report_view& out, const report_rows& rows, const graph& g, const decision_graph& d)
      : out_(out), row_of_(g.operations.size(), -1) {
    for (std::size_t n = 0; n < d.nodes.size(); ++n)
      for (const int o : d.nodes[n].operations) row_of_[static_cast<std::size_t>(o)] = rows.row_of(n);
    out.memory_kinds.assign(memory_kind_names.begin(), memory_kind_names.end());
  }

  /// The program of a place, of graph `g`; `beside`: bytes of a device that it does not plan.
  void add(const std::string& label, const program& p, const graph& g, const stream_events& seen, double ms,
           long beside) {
    static constexpr const char* streams[] = {"operators", "collectives", "receives", "sends"};
    report_view::place to;
    to.label = label;
    for (int n = 0; n <= (p.has_all_passes() ? streams_beside : 1); ++n) to.lanes.push_back({streams[n], {}});
    for (const stream_event& e : seen.work) {
      const instruction& i = p.code[static_cast<std::size_t>(e.instruction)];
      report_view::work w{e.begin, e.end, name_of(i, p, g), -1, when(i, g), e.pass};
      if (p.has_all_passes()) w.pass = pass_of(p, e.instruction);
      if (e.stream < 0) to.busy_ms += e.end - e.begin;
      w.decision = share(i, p, e.end - e.begin, e.stream >= 0);
      to.lanes[static_cast<std::size_t>(e.stream + 1)].done.push_back(w);
    }
    to.peak_bytes = p.arena_bytes + p.persistent_bytes() + beside;
    to.memory = memory_over_step(memory_by_kind(p, g, beside), seen.came, ms);
    out_.places.push_back(std::move(to));
  }

  /// A name of work, by number.
  int named(const std::string& name) {
    const auto [at, fresh] = names_.try_emplace(name, static_cast<int>(out_.names.size()));
    if (fresh) out_.names.push_back(name);
    return at->second;
  }

 private:
  int row_of(int operation) const {
    const auto o = static_cast<std::size_t>(operation);
    return operation >= 0 && o < row_of_.size() ? row_of_[o] : -1;
  }
  void add(int row, double ms, bool beside) {
    if (row < 0) {
      out_.unowned_ms += beside ? 0 : ms;
      return;
    }
    report_view::decision& d = out_.decisions[static_cast<std::size_t>(row)];
    (beside ? d.collectives_ms : d.operators_ms) += ms;
  }
  // Counts an instruction's time for the decisions it is of: of one that does the same to many tensors, by their bytes.
  // Returns the decision, or -1 where they are several.
  int share(const instruction& i, const program& p, double ms, bool beside) {
    const std::span<const instruction> parts = p.parts(i);
    const bool many = i.fusion >= 0 && p.fusions[static_cast<std::size_t>(i.fusion)].pattern < 0;
    const int first = row_of(i.op);
    if (!many || std::all_of(parts.begin(), parts.end(), [&](const auto& x) { return row_of(x.op) == first; })) {
      add(first, ms, beside);
      return first;
    }
    double all = 0;
    for (const instruction& part : parts) all += static_cast<double>(p[part.out[0]].bytes);
    for (const instruction& part : parts)
      add(row_of(part.op), ms * static_cast<double>(p[part.out[0]].bytes) / all, beside);
    return -1;
  }
  static std::uint8_t when(const instruction& i, const graph& g) {
    return i.op < 0 ? 0 : i.again ? 3 : static_cast<std::uint8_t>(g.at(i.op).when);
  }
  static int pass_of(const program& p, int at) {
    const auto next = std::upper_bound(p.slots.begin(), p.slots.end(), at,
                                       [](int instruction, const program_slot& s) { return instruction < s.first; });
    return next == p.slots.begin() ? 0 : std::prev(next)->pass;
  }
  int name_of(const instruction& i, const program& p, const graph& g) {
    const auto tensor = [&](int b) { return std::string(g[p[b].value].label.view()); };
    switch (i.kind) {
      case instruction::hand:
        if (i.communicates())
          return named(std::string(collective_names[static_cast<std::size_t>(collective_of(i, g))]) + " over " +
                       axis_names(p.mesh, i.step) + " of " + tensor(i.in[0]));
        [[fallthrough]];
      case instruction::compute: {
        const std::string made = tensor(i.out[0]);
        if (i.fusion < 0) return named(made);
        const fusion& f = p.fusions[static_cast<std::size_t>(i.fusion)];
        if (f.pattern >= 0) return named(made + ", " + std::string(f.label));
        return named(std::string(f.label) + " of " + std::to_string(f.end - f.first) + " tensors");
      }
      case instruction::reshard:
        return named(std::string(step_names[i.step.kind]) + " over " + axis_names(p.mesh, i.step) + " of " +
                     tensor(i.in[0]));
      case instruction::carry:
        return named((p[i.out[0]].on_host ? "to the host: " : "from the host: ") + tensor(i.in[0]));
      case instruction::narrow: return named("narrowed: " + tensor(i.in[0]));
      case instruction::send: return named("to place " + std::to_string(i.with) + ": " + tensor(i.in[0]));
      case instruction::receive: break;
    }
    return named("from place " + std::to_string(i.with) + ": " + tensor(i.out[0]));
  }

  report_view& out_;
  std::vector<int> row_of_;  // of each operation
  std::map<std::string, int> names_;
};

}  // namespace cfp::inline v0_1::detail
