// A plan as people read it: what each decision chose, and what that costs.
#pragma once

#include <cfp/plan/realise.hpp>
#include <cfp/profile/cost/program_memory.hpp>
#include <cfp/session/values.hpp>
#include <cfp/solve/cost_graph.hpp>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

namespace cfp::inline v0_1::detail {

/// How many a decision stands for.
inline long times_of(const decision& d, const graph& g) {
  const int o = d.operations.empty() ? g[d.index].producer : d.operations.front();
  return o < 0 ? 1 : g.at(o).times;
}

/// Decisions that have a choice: those of parts, then what shared tensors do. `costs` may be empty.
inline std::vector<plan_line> lines_of(const plan& p, const graph& g, const decision_graph& d,
                                       const cost_graph& costs) {
  const std::vector<collective_count> sent = sent_for(p, g, d);
  std::vector<plan_line> out;
  for (const bool of_part : {true, false})
    for (std::size_t n = 0; n < d.nodes.size(); ++n) {
      const decision& node = d.nodes[n];
      const auto c = static_cast<std::size_t>(p.choices[n]);
      if ((node.kind == decision::strategy_of_part) != of_part || node.choices() < 2) continue;
      const double ms = costs.nodes.empty() || node.operations.empty() ? 0 : costs.nodes[n].time[c];
      out.push_back(
          {of_part ? node.label : decision_label(node), node.names[c], of_part, ms, sent[n], times_of(node, g)});
    }
  return out;
}

inline long role_bytes(const program& p, const graph& g, value_role role) {
  long n = 0;
  for (std::size_t b = 0; b < p.buffers.size(); ++b)
    if (p.buffers[b].persistent && !p.buffers[b].on_host && p.buffers[b].root == static_cast<int>(b) &&
        g[p.buffers[b].value].role == role)
      n += p.buffers[b].bytes;
  return n;
}

/// What memory holds when a program runs.
inline memory_split split_of(const program& p, const graph& g) {
  const program_memory kept = memory_of(p, g);
  memory_split out;
  out.weight_bytes = role_bytes(p, g, value_role::weight);
  out.state_bytes = role_bytes(p, g, value_role::state);
  out.kept_bytes = kept.kept - out.weight_bytes - out.state_bytes;
  out.transient_bytes = kept.transient;
  out.host_state_bytes = p.host_bytes(true, false);
  out.host_kept_bytes = p.host_bytes(false, true);
  return out;
}

/// Whether any part can be split at all.
inline bool splits(const decision_graph& d) {
  return std::any_of(d.nodes.begin(), d.nodes.end(),
                     [](const decision& n) { return n.kind == decision::strategy_of_part && n.choices() > 1; });
}

/// The namespace of a plan's header: "some/gpt_plan.hpp" -> gpt_plan
inline std::string header_space(const std::string& file) {
  std::string stem = std::filesystem::path(file).filename().string();
  stem = stem.substr(0, stem.find('.'));
  for (char& c : stem)
    if (!is_name_character(c)) c = '_';
  return stem.empty() || (stem[0] >= '0' && stem[0] <= '9') ? "plan_" + stem : stem;
}

}  // namespace cfp::detail
