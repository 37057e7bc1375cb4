// What decisions take by sums of parts, and what else they could choose, as a report shows it.
#pragma once

#include <cfp/export/report/report_view.hpp>
#include <cfp/session/report_rows.hpp>
#include <cfp/solve/explain/alternative.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

namespace cfp::inline v0_1::detail {

class report_choices {
 public:
  /// `costs` may be without a limit of memory: what the best of others would take is then not asked to keep it.
  report_choices(const cost_graph& costs, const decision_graph& d, const std::vector<int>& choices)
      : costs_(costs), d_(d), choices_(choices), edges_(costs.nodes.size()) {
    for (std::size_t e = 0; e < costs.edges.size(); ++e)
      for (const int end : {costs.edges[e].from, costs.edges[e].to}) edges_[static_cast<std::size_t>(end)].push_back(e);
    cost_graph free = costs;
    free.memory_limit.reset();
    through_ = times_through(free, solve_options());
    ms_ = evaluate(free, choices).time;
  }

  /// Milliseconds of the plan.
  double ms() const { return ms_; }

  /// Writes what the decisions of a report take, and their best alternatives.
  void write(const report_rows& rows, std::vector<report_view::decision>& out) const {
    for (std::size_t n = 0; n < d_.nodes.size(); ++n) {
      report_view::decision& to = out[static_cast<std::size_t>(rows.row_of(n))];
      const cost_node& node = costs_.nodes[n];
      const auto c = static_cast<std::size_t>(choices_[n]);
      to.parts_ms += node.time[c];
      to.memory_bytes += node.memory[c];
      for (const std::size_t e : edges_[n])
        if (costs_.edges[e].to == static_cast<int>(n)) to.edges_ms += time_of(costs_.edges[e], n, choices_[n]);
    }
    for (std::size_t r = 0; r < out.size(); ++r) out[r].others = others(rows.first(r));
  }

 private:
  static constexpr std::size_t most = 8;  // that are shown of one decision

  // Of an edge, if a node at one of its ends chose so.
  double time_of(const cost_edge& e, std::size_t node, int choice) const {
    const auto end = [&](int n) {
      return static_cast<std::size_t>(n == static_cast<int>(node) ? choice : choices_[static_cast<std::size_t>(n)]);
    };
    return e.time[end(e.from) * costs_.nodes[static_cast<std::size_t>(e.to)].time.size() + end(e.to)];
  }
  double around(std::size_t node, int choice) const {
    double ms = costs_.nodes[node].time[static_cast<std::size_t>(choice)];
    for (const std::size_t e : edges_[node]) ms += time_of(costs_.edges[e], node, choice);
    return ms;
  }
  std::vector<report_view::alternative> others(std::size_t node) const {
    const decision& at = d_.nodes[node];
    const std::vector<std::int64_t>& bytes = costs_.nodes[node].memory;
    const auto mine = static_cast<std::size_t>(choices_[node]);
    const double now = around(node, choices_[node]);
    std::vector<std::pair<double, report_view::alternative>> all;
    for (std::size_t c = 0; c < at.choices(); ++c) {
      report_view::alternative a;
      a.choice = at.names[c];
      a.alone_ms = around(node, static_cast<int>(c)) - now;
      a.memory_bytes = static_cast<long>(bytes[c] - bytes[mine]);
      if (through_) a.best_ms = through_->of[node][c] - ms_;
      const double by = through_ ? a.best_ms : a.alone_ms;
      if (c != mine && std::isfinite(by)) all.emplace_back(by, std::move(a));
    }
    std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<report_view::alternative> out;
    for (std::size_t i = 0; i < std::min(most, all.size()); ++i) out.push_back(std::move(all[i].second));
    return out;
  }

  const cost_graph& costs_;
  const decision_graph& d_;
  const std::vector<int>& choices_;
  std::vector<std::vector<std::size_t>> edges_;  // of each node
  std::optional<times_through_t> through_;
  double ms_ = 0;
};

}  // namespace cfp::inline v0_1::detail
