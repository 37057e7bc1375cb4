// A plan as a JSON file, and its choices from one.
#pragma once

#include <cfp/core/bad_input.hpp>
#include <cfp/model/read_mesh.hpp>
#include <cfp/plan/realise.hpp>
#include <cfp/solve/json_reader.hpp>

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cfp::inline v0_1 {

namespace detail {

// Names that may repeat, told apart: "a", "a (2)", "b".
inline std::vector<std::string> told_apart(std::vector<std::string> names) {
  std::set<std::string> taken;
  for (std::string& n : names) {
    const std::string first = n;
    for (int k = 2; !taken.insert(n).second; ++k) n = first + " (" + std::to_string(k) + ")";
  }
  return names;
}
inline std::vector<std::string> decision_keys(const decision_graph& d) {
  std::vector<std::string> labels;
  for (const decision& n : d.nodes) labels.push_back(decision_label(n));
  return told_apart(std::move(labels));
}

}  // namespace detail

/// The plan as JSON: decisions, the partition of every tensor, the collectives in order.
inline nlohmann::ordered_json to_json(const plan& p, const graph& g, const mesh_shape& mesh, const decision_graph& d,
                                      const std::string& model) {
  nlohmann::ordered_json j;
  j["model"] = model;
  for (const mesh_axis& a : mesh.axes) j["mesh"][std::string(a.label.view())] = a.size;
  j["predicted_ms"] = p.predicted_ms;
  j["predicted_peak_bytes"] = predicted_peak(p);
  const std::vector<std::string> keys = detail::decision_keys(d);
  for (std::size_t n = 0; n < d.nodes.size(); ++n)
    j["decisions"][keys[n]] = detail::told_apart(d.nodes[n].names)[static_cast<std::size_t>(p.choices[n])];
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

/// What a file says of a plan.
struct saved_plan {
  double predicted_ms = 0;
  std::vector<int> choices;
};

namespace detail {

class plan_reader : json_reader<bad_input> {
 public:
  plan_reader(std::string_view text, const std::string& where) : json_reader(text, where) {}

  [[nodiscard]] saved_plan read(const std::string& model, const mesh_shape& mesh, const decision_graph& d) const {
    const json all = parsed();
    only(all, "the plan",
         {"model", "mesh", "predicted_ms", "predicted_peak_bytes", "decisions", "partitions", "collectives"}, "plans");
    const std::string of = text(member(all, "the plan", "model"), "'model'");
    if (of != model) refuse("is of model '" + of + "', this is '" + model + "'");
    check_mesh(member(all, "the plan", "mesh"), mesh);
    const json& predicted = member(all, "the plan", "predicted_ms");
    if (!predicted.is_number()) refuse("'predicted_ms' must be a number, got " + std::string(predicted.type_name()));
    return {predicted.get<double>(), choices(member(all, "the plan", "decisions"), d)};
  }

 private:
  void check_mesh(const json& axes, const mesh_shape& mesh) const {
    if (!axes.is_object()) refuse("'mesh' must be an object, got " + std::string(axes.type_name()));
    std::string of;
    std::map<std::string, std::string> sizes;
    for (const auto& [axis, size] : axes.items()) {
      sizes[axis] = shown(size);
      of += (of.empty() ? "" : ",") + axis + "=" + sizes[axis];
    }
    bool same = axes.size() == static_cast<std::size_t>(mesh.rank());
    for (const mesh_axis& a : mesh.axes) same = same && sizes[std::string(a.label.view())] == std::to_string(a.size);
    if (!same) refuse("is for mesh " + of + ", this one is " + to_string(mesh));
  }
  // Up to three of several names.
  static std::string some(const std::vector<std::string>& names) {
    std::string out;
    for (std::size_t n = 0; n < names.size() && n < 3; ++n) out += (n ? ", '" : "'") + names[n] + "'";
    return out + (names.size() > 3 ? " and " + std::to_string(names.size() - 3) + " more" : "");
  }
  // A plan and a model decide the same, or it is another one's.
  void check_decisions(const json& named, const std::vector<std::string>& keys) const {
    std::vector<std::string> unknown, missing;
    for (const auto& item : named.items())
      if (std::find(keys.begin(), keys.end(), item.key()) == keys.end()) unknown.push_back(item.key());
    for (const std::string& key : keys)
      if (!named.contains(key)) missing.push_back(key);
    std::string why;
    if (!unknown.empty()) why = "decides " + some(unknown) + ", which this model has not to decide";
    if (!missing.empty())
      why += std::string(why.empty() ? "" : "; it ") + "does not decide " + some(missing) + ", which this model has";
    if (!why.empty()) refuse(why + ": is it another model's plan?");
  }
  [[nodiscard]] std::vector<int> choices(const json& named, const decision_graph& d) const {
    if (!named.is_object()) refuse("'decisions' must be an object, got " + std::string(named.type_name()));
    const std::vector<std::string> keys = decision_keys(d);
    check_decisions(named, keys);
    std::vector<int> out;
    for (std::size_t n = 0; n < keys.size(); ++n) {
      const std::string want = text(member(named, "'decisions'", keys[n].c_str()), "'" + keys[n] + "'");
      const std::vector<std::string> names = told_apart(d.nodes[n].names);
      const auto at = std::find(names.begin(), names.end(), want);
      if (at == names.end())
        refuse("'" + keys[n] + "' has no choice '" + want + "'; its choices are " + some(names) +
               ": is it a plan of a model of other sizes?");
      out.push_back(static_cast<int>(at - names.begin()));
    }
    return out;
  }
};

}  // namespace detail

/// Reads what `to_json` wrote. Throws bad_input, a sentence that begins with `where`, for a plan of another model or
/// mesh, for decisions and choices that this model has not, and for what is no plan.
inline saved_plan read_plan(std::string_view text, const std::string& where, const std::string& model,
                            const mesh_shape& mesh, const decision_graph& d) {
  return detail::plan_reader(text, where).read(model, mesh, d);
}

}  // namespace cfp
