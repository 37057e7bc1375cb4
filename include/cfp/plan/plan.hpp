// A plan: one choice per decision, what follows for every tensor, and the program it becomes.
#pragma once

#include <cfp/profile/costs.hpp>

#include <nlohmann/json.hpp>

namespace cfp::inline v0_1 {

struct plan {
  std::string name;
  std::vector<int> choices;  ///< per decision
  sharding shards;
  program code;              ///< lowered, memory planned
  double additive_ms = 0;    ///< sum of the parts
  double predicted_ms = 0;   ///< from unique segments run whole
  double solve_seconds = 0;
};

/// Bytes beyond the planned memory that an executor may take: its prepared instructions and their bookkeeping.
inline long memory_allowance(const program& p) {
  return static_cast<long>(p.code.size() * host::executor<float>::bytes_per_instruction) +
         static_cast<long>(p.buffers.size()) * 256 + 65536;
}
inline long predicted_peak(const program& p) { return p.arena_bytes + p.persistent_bytes() + memory_allowance(p); }

/// Makes the program of a plan in the order of a schedule.
inline plan realise(std::string label, const graph& g, const mesh_shape& mesh, const decision_graph& d,
                    std::vector<int> choices, const target& on = {}, const schedule& order = {}) {
  plan out;
  out.name = std::move(label);
  out.choices = std::move(choices);
  out.shards = shard(g, d, out.choices);
  out.code = lower(g, mesh, out.shards, all_operations(g), on.real_bytes);
  apply(order, out.code);
  on.complete(out.code, g);
  return out;
}

/// The label of a decision in files and messages: "strategy of h.0.attn.c_attn.linear".
inline std::string decision_label(const decision& n) {
  static constexpr const char* kinds[] = {"strategy of ", "rest of ", "forms of ", "placement of ", ""};
  return kinds[n.kind] + n.label;
}

/// What each decision's operations have sent for them: a conversion belongs to the operation it is made for.
inline std::vector<collective_count> sent_for(const plan& p, const graph& g, const decision_graph& d) {
  std::vector<std::size_t> owner(g.operations.size());
  for (std::size_t n = 0; n < d.nodes.size(); ++n)
    for (int o : d.nodes[n].operations) owner[static_cast<std::size_t>(o)] = n;
  std::vector<collective_count> out(d.nodes.size());
  for (std::size_t i = 0; i < p.code.code.size(); ++i)
    count_collective(p.code, g, i, out[owner[static_cast<std::size_t>(p.code.code[i].op)]]);
  return out;
}

/// "all_reduce x2 1.50 MiB", or nothing.
inline std::string describe(const collective_count& n) {
  std::string out;
  for (std::size_t k = 0; k < collective_names.size(); ++k)
    if (n.calls[k] > 0) out.append(out.empty() ? "" : ", ").append(collective_names[k]).append(n.calls[k] > 1 ? " x" + std::to_string(n.calls[k]) : "");
  if (out.empty()) return out;
  char size[32];
  std::snprintf(size, sizeof size, " %.2f MiB", static_cast<double>(n.total_bytes()) / 1048576);
  return out + size;
}

/// The cost graph with some decisions fixed (choice >= 0).
inline cost_graph fixed(cost_graph costs, const std::vector<int>& choices) {
  for (std::size_t n = 0; n < choices.size(); ++n)
    for (std::size_t c = 0; c < costs.nodes[n].time.size(); ++c)
      if (choices[n] >= 0 && static_cast<int>(c) != choices[n])
        costs.nodes[n].time.set(c, std::numeric_limits<double>::infinity());
  return costs;
}

/// The plan as JSON: decisions, the partition of every tensor, the collectives in order.
inline nlohmann::ordered_json to_json(const plan& p, const graph& g, const mesh_shape& mesh, const decision_graph& d,
                                      const std::string& model) {
  nlohmann::ordered_json j;
  j["model"] = model;
  for (const mesh_axis& a : mesh.axes) j["mesh"][std::string(a.label.view())] = a.size;
  j["predicted_ms"] = p.predicted_ms;
  j["predicted_peak_bytes"] = predicted_peak(p.code);
  for (std::size_t n = 0; n < d.nodes.size(); ++n)
    j["decisions"][decision_label(d.nodes[n])] = d.nodes[n].names[static_cast<std::size_t>(p.choices[n])];
  for (const buffer& b : p.code.buffers) {
    auto& forms = j["partitions"][std::string(g[b.value].label.view())];
    const std::string form = describe(b.held, g[b.value], mesh);
    if (std::find(forms.begin(), forms.end(), form) == forms.end()) forms.push_back(form);
  }
  auto& all = j["collectives"] = nlohmann::ordered_json::array();
  for (const instruction& i : p.code.code) {
    if (i.kind != instruction::reshard || !i.step.communicates()) continue;
    const buffer& from = p.code[i.in[0]];
    all.push_back({{"collective", collective_names[static_cast<std::size_t>(i.step.collective())]},
                   {"axis", mesh.axes[i.step.axis].label.view()},
                   {"tensor", g[from.value].label.view()},
                   {"bytes_sent", bytes_sent(i.step, from.held, elements(g[from.value].shape) * g[from.value].width(p.code.real_bytes), mesh)}});
  }
  return j;
}

/// The choices a saved plan names. Throws std::runtime_error that names the key and value that do not fit.
inline std::vector<int> choices_from_json(const nlohmann::json& j, const decision_graph& d) {
  std::vector<int> choices;
  const auto& all = j.at("decisions");
  for (const decision& n : d.nodes) {
    const std::string label = decision_label(n);
    if (!all.contains(label)) throw std::runtime_error("it has no '" + label + "'");
    const std::string want = all.at(label);
    const auto at = std::find(n.names.begin(), n.names.end(), want);
    if (at == n.names.end()) throw std::runtime_error("'" + label + "' has no choice '" + want + "'");
    choices.push_back(static_cast<int>(at - n.names.begin()));
  }
  return choices;
}

}  // namespace cfp
