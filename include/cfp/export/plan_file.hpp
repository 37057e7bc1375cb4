// A plan as a JSON file, and its choices from one.
#pragma once

#include <cfp/plan/realise.hpp>

#include <nlohmann/json.hpp>

namespace cfp::inline v0_1 {

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
    all.push_back(
        {{"collective", collective_names[static_cast<std::size_t>(i.step.collective())]},
         {"axis", mesh.axes[i.step.axis].label.view()},
         {"tensor", g[from.value].label.view()},
         {"bytes_sent", bytes_sent(i.step, from.held,
                                   elements(g[from.value].shape) * g[from.value].width(p.code.real_bytes), mesh)}});
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
