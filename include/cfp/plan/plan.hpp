// A plan: one choice per decision, what follows for every tensor, and the program it becomes.
#pragma once

#include <cfp/block/segments.hpp>
#include <cfp/profile/costs.hpp>

#include <nlohmann/json.hpp>

namespace cfp {

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

/// Makes the program of a plan, for numbers of `real_bytes`.
inline plan realise(std::string label, const graph& g, const mesh_shape& mesh, const decision_graph& d,
                    std::vector<int> choices, long real_bytes = sizeof(float)) {
  plan out;
  out.name = std::move(label);
  out.choices = std::move(choices);
  out.shards = shard(g, d, out.choices);
  out.code = lower(g, mesh, out.shards, all_operations(g), real_bytes);
  plan_memory(out.code);
  return out;
}

/// The label of a decision in files and messages: "strategy of h.0.attn.c_attn.linear".
inline std::string decision_label(const decision& n) {
  static constexpr const char* kinds[] = {"strategy of ", "rest of ", "forms of ", "placement of "};
  return kinds[n.kind] + n.label;
}

/// Predicts a plan from whole segments: each unique segment of it is run for real, conversions between segments are added.
class segment_predictor {
 public:
  segment_predictor(const graph& g, const block_structure& s, const segmentation& seg, const decision_graph& d)
      : g_(g), d_(d), segments_(seg), of_node_(d.nodes.size(), -1), operations_(seg.segments.size()) {
    std::vector<int> of_block(s.blocks.size());
    for (std::size_t i = 0; i < seg.segments.size(); ++i)
      for (int b = 0; b < seg.segments[i].count; ++b)
        of_block[static_cast<std::size_t>(seg.segments[i].first + b)] = static_cast<int>(i);
    for (std::size_t n = 0; n < d.nodes.size(); ++n)
      if (d.nodes[n].kind == decision::strategy_of_part)
        of_node_[n] = of_block[static_cast<std::size_t>(s.parts[static_cast<std::size_t>(d.nodes[n].index)].block)];
    // Shared tensors belong to the last segment that reads them, their gradients with them.
    for (const decision_edge& e : d.edges) {
      const auto to = static_cast<std::size_t>(e.to), from = static_cast<std::size_t>(e.from);
      if (d.nodes[from].kind == decision::forms_of_tensor) of_node_[from] = std::max(of_node_[from], of_node_[to]);
    }
    for (std::size_t n = 0; n < d.nodes.size(); ++n) {
      if (of_node_[n] >= 0) continue;
      for (std::size_t m = 0; m < d.nodes.size(); ++m)
        if (d.nodes[m].kind == decision::forms_of_tensor && d.nodes[m].index == d.nodes[n].index) of_node_[n] = of_node_[m];
      if (of_node_[n] < 0) of_node_[n] = 0;
    }
    for (std::size_t n = 0; n < d.nodes.size(); ++n)
      for (int o : d.nodes[n].operations) operations_[static_cast<std::size_t>(of_node_[n])].push_back(o);
    for (auto& ops : operations_) std::sort(ops.begin(), ops.end());
  }

  double predict(const plan& p, profiler& measure_with, const cost_graph& costs) const {
    double ms = 0;
    for (std::size_t i = 0; i < operations_.size(); ++i)
      ms += measure_with.whole(operations_[i], p.shards, "segment of kind " + std::to_string(segments_.segments[i].kind)).median;
    for (const cost_edge& e : costs.edges)
      if (of_node_[static_cast<std::size_t>(e.from)] != of_node_[static_cast<std::size_t>(e.to)])
        ms += e.time[static_cast<std::size_t>(p.choices[static_cast<std::size_t>(e.from)]) *
                         costs.nodes[static_cast<std::size_t>(e.to)].time.size() +
                     static_cast<std::size_t>(p.choices[static_cast<std::size_t>(e.to)])];
    return ms;
  }

 private:
  const graph& g_;
  const decision_graph& d_;
  const segmentation& segments_;
  std::vector<int> of_node_;
  std::vector<std::vector<int>> operations_;
};

/// The cost graph with some decisions fixed (choice >= 0).
inline cost_graph fixed(cost_graph costs, const std::vector<int>& choices) {
  for (std::size_t n = 0; n < choices.size(); ++n)
    for (std::size_t c = 0; c < costs.nodes[n].time.size(); ++c)
      if (choices[n] >= 0 && static_cast<int>(c) != choices[n])
        costs.nodes[n].time[c] = std::numeric_limits<double>::infinity();
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
    if (i.kind != instruction::convert || !i.step.communicates()) continue;
    const buffer& from = p.code[i.in[0]];
    all.push_back({{"collective", collective_names[static_cast<std::size_t>(i.step.collective())]},
                   {"axis", mesh.axes[i.step.axis].label.view()},
                   {"tensor", g[from.value].label.view()},
                   {"bytes_sent", bytes_sent(i.step, from.held, elements(g[from.value].shape) * 4, mesh)}});
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
