// A plan as a JSON file, and its choices from one.
#pragma once

#include <cfp/core/bad_input.hpp>
#include <cfp/export/plan_names.hpp>
#include <cfp/export/plan_outline.hpp>
#include <cfp/export/stages_file.hpp>
#include <cfp/file/json_reader.hpp>
#include <cfp/model/checked.hpp>
#include <cfp/model/read_mesh.hpp>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cfp::inline v0_1 {

inline constexpr int plan_file_version = 1;

namespace detail {

// Weights and inputs by name, as they are after refinement: "[width=16 hidden=32]".
inline std::map<std::string, std::string> given_tensors(const graph& g) {
  std::map<std::string, std::string> out;
  for (const value& v : g.values)
    if (v.producer < 0 && (v.role == value_role::weight || v.role == value_role::input))
      out[std::string(v.label.view())] = said_shape(v);
  return out;
}

// What the ranks of a place hold and send.
inline void write_program(const program& p, const graph& g, const plan_names& names, nlohmann::ordered_json& j) {
  for (const buffer& b : p.buffers) {
    if (b.value >= g.value_count()) continue;  // made of the graph for stages
    auto& forms = j["partitions"][names.tensor(b.value)];
    const std::string form = describe(b.held, g[b.value], p.mesh);
    if (std::find(forms.begin(), forms.end(), form) == forms.end()) forms.push_back(form);
  }
  for (std::size_t at = 0; at < p.code.size(); ++at) {
    const instruction& i = p.code[at];
    if (!(i.communicates() || i.sends()) || p[i.in[0]].value >= g.value_count() || p[i.in[0]].pass > 0) continue;
    const buffer& from = p[i.in[0]];
    const long bytes = elements(g[from.value].shape) * g[from.value].width(p.real_bytes);
    nlohmann::ordered_json one;
    if (i.sends()) one = {{"collective", "send"}, {"to", i.with}};
    else
      one = {{"collective", collective_names[static_cast<std::size_t>(collective_of(i, g))]},
             {"axis", axis_names(p.mesh, i.step)}};
    if (p.has_all_passes()) one["place"] = p.place;
    one["tensor"] = names.tensor(from.value);
    one["bytes_sent"] = i.sends()                     ? from.bytes
                        : i.kind == instruction::hand ? handed_bytes(p, g, i)
                                                      : bytes_sent(i.step, from.held, bytes, p.mesh);
    j["collectives"].push_back(std::move(one));
  }
}

}  // namespace detail

/// The plan as JSON: decisions, the partition of every tensor, the collectives in order, of several micro-batches one.
/// `mesh`: of all ranks; `stages`: how it is cut, if it is in stages.
inline nlohmann::ordered_json to_json(const plan& p, const graph& g, const mesh_shape& mesh, const decision_graph& d,
                                      const std::string& model, const staged_layout* stages = nullptr) {
  const plan_names names(g, d);
  nlohmann::ordered_json j;
  j["version"] = plan_file_version;
  j["model"] = model;
  j["operators"] = g.size();
  j["graph"] = names.graph_path();
  j["tensors"] = detail::given_tensors(g);
  for (const mesh_axis& a : mesh.axes) j["mesh"][std::string(a.label.view())] = a.size;
  if (stages != nullptr) j["stages"] = detail::to_json(*stages, g, names);
  j["predicted_ms"] = p.predicted_ms;
  j["predicted_peak_bytes"] = predicted_peak(p);
  for (std::size_t n = 0; n < d.nodes.size(); ++n)
    j["decisions"][names.decisions()[n]] = names.choices(n)[static_cast<std::size_t>(p.choices[n])];
  j["partitions"] = nlohmann::ordered_json::object();
  j["collectives"] = nlohmann::ordered_json::array();
  for (const program& code : p.programs()) detail::write_program(code, g, names, j);
  return j;
}

/// What a file says of a plan.
struct saved_plan {
  double predicted_ms = 0;
  std::vector<int> choices;
  std::optional<staged_layout> stages{};
};

namespace detail {

class plan_reader : json_reader<bad_input> {
 public:
  plan_reader(std::string_view text, const std::string& where) : json_reader(text, where), text_(text), where_(where) {}

  [[nodiscard]] plan_outline outline() const {
    const json all = parsed();
    if (!all.is_object()) refuse("the plan must be an object, got " + std::string(all.type_name()));
    check_version(all, "the plan", plan_file_version);
    object(member(all, "the plan", "mesh"), "'mesh'");
    std::string axes;
    const nlohmann::ordered_json in_order = nlohmann::ordered_json::parse(text_);  // axes have an order
    for (const auto& [axis, size] : in_order["mesh"].items())
      axes.append(axes.empty() ? "" : ",").append(axis).append("=").append(size.dump().substr(0, 20));
    plan_outline out;
    out.model = text(member(all, "the plan", "model"), "'model'");
    try {
      out.mesh = read_mesh(axes);
    } catch (const bad_input& e) {
      refuse(e.what());
    }
    if (!has_stages(out.mesh)) return out;
    const json& passes = member(object(member(all, "the plan", "stages"), "'stages'"), "'stages'", "micro_batches");
    if (!passes.is_number_integer() || passes < 1 || passes > 1000000)
      refuse("'micro_batches' must be a whole number from 1 to 1000000, is " + shown(passes));
    out.micro_batches = passes.get<int>();
    return out;
  }

  [[nodiscard]] saved_plan read(const std::string& model, const graph& g, const mesh_shape& mesh,
                                const decision_graph& d) const {
    const json all = parsed();
    if (!all.is_object()) refuse("the plan must be an object, got " + std::string(all.type_name()));
    check_version(all, "the plan", plan_file_version);
    only(all, "the plan",
         {"version", "model", "operators", "graph", "tensors", "mesh", "stages", "predicted_ms", "predicted_peak_bytes",
          "decisions", "partitions", "collectives"},
         "plans");
    const std::string of = text(member(all, "the plan", "model"), "'model'");
    if (of != model) refuse("is of model '" + of + "', this is '" + model + "'");
    const plan_names names(g, d);
    check_tensors(member(all, "the plan", "tensors"), g);
    check_operators(member(all, "the plan", "operators"), member(all, "the plan", "graph"), g, names);
    check_mesh(member(all, "the plan", "mesh"), mesh);
    const json& predicted = member(all, "the plan", "predicted_ms");
    if (!predicted.is_number() || !(predicted.get<double>() >= 0 && predicted.get<double>() <= most_ms))
      refuse("'predicted_ms' must be a number from 0 to 1e24, got " + shown(predicted));
    saved_plan out{predicted.get<double>(), choices(member(all, "the plan", "decisions"), d, names), {}};
    if (has_stages(mesh)) out.stages = stages_reader(where_).read(member(all, "the plan", "stages"), g, mesh, names);
    else if (all.contains("stages")) refuse("has 'stages', and its mesh has no axis 'stage'");
    return out;
  }

 private:
  static constexpr double most_ms = 1e24;  // as in tables
  const std::string_view text_;
  const std::string where_;

  // A model of the same name may be another one.
  void check_tensors(const json& theirs, const graph& g) const {
    if (!theirs.is_object()) refuse("'tensors' must be an object, got " + std::string(theirs.type_name()));
    const std::map<std::string, std::string> mine = given_tensors(g);
    for (const auto& [label, shape] : mine) {
      const auto at = theirs.find(label);
      if (at == theirs.end()) refuse("is of a model without tensor '" + label + "', this one has it");
      if (*at != shape)
        refuse("is of a model whose tensor '" + label + "' is " + text(*at, "'" + label + "'") + ", this one's is " +
               shape);
    }
    for (const auto& item : theirs.items())
      if (mine.count(item.key()) == 0) refuse("is of a model with tensor '" + item.key() + "', which this one has not");
  }
  void check_operators(const json& count, const json& path, const graph& g, const plan_names& names) const {
    if (count != g.size())
      refuse("is of a model of " + count.dump() + " operators, this one has " + std::to_string(g.size()) +
             ", with those of its training");
    if (path != names.graph_path())
      refuse("is of a model of as many operators, others or joined otherwise than this one's");
  }
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
    const std::set<std::string> known(keys.begin(), keys.end());
    std::vector<std::string> unknown, missing;
    for (const auto& item : named.items())
      if (known.count(item.key()) == 0) unknown.push_back(item.key());
    for (const std::string& key : keys)
      if (!named.contains(key)) missing.push_back(key);
    std::string why;
    if (!unknown.empty()) why = "decides " + some(unknown) + ", which this model has not to decide";
    if (!missing.empty())
      why += std::string(why.empty() ? "" : "; it ") + "does not decide " + some(missing) + ", which this model has";
    if (!why.empty()) refuse(why + ": is it another model's plan?");
  }
  [[nodiscard]] std::vector<int> choices(const json& named, const decision_graph& d, const plan_names& names) const {
    const std::vector<std::string>& keys = names.decisions();
    check_decisions(object(named, "'decisions'"), keys);
    std::vector<int> out;
    for (std::size_t n = 0; n < d.nodes.size(); ++n) {
      const std::string want = text(member(named, "'decisions'", keys[n].c_str()), "'" + keys[n] + "'");
      const std::vector<std::string> all = names.choices(n);
      const auto at = std::find(all.begin(), all.end(), want);
      if (at == all.end())
        refuse(
            "'" + keys[n] + "' has no choice '" + want + "'; its choices are " + some(all) +
            (want.find("/regathered") != std::string::npos
                 ? ": weights may be gathered again only where a memory limit is given, as it was when this was saved"
             : want.find(" on the host") != std::string::npos
                 ? ": on the host may something rest only where a memory limit is given, and in no search"
             : want.find(" recomputed") != std::string::npos ? ": what forward computes may be computed again only "
                                                               "where a memory limit is given, as it was when this was "
                                                               "saved"
                                                             : ": is it a plan of a model of other sizes?"));
      out.push_back(static_cast<int>(at - all.begin()));
    }
    return out;
  }
};

}  // namespace detail

/// Of a plan that `to_json` wrote. Throws bad_input as `read_plan` does.
inline plan_outline outline_of_plan(std::string_view text, const std::string& where) {
  return detail::plan_reader(text, where).outline();
}

/// Reads what `to_json` wrote. Throws bad_input, a sentence that begins with `where`, for a plan of another version,
/// model or mesh, for decisions and choices that this model has not, and for what is no plan.
inline saved_plan read_plan(std::string_view text, const std::string& where, const std::string& model, const graph& g,
                            const mesh_shape& mesh, const decision_graph& d) {
  return detail::plan_reader(text, where).read(model, g, mesh, d);
}

}  // namespace cfp
