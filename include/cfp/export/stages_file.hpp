// What a plan's file says of stages: where the model is cut, and which schedule they follow.
#pragma once

#include <cfp/core/bad_input.hpp>
#include <cfp/export/plan_names.hpp>
#include <cfp/file/json_reader.hpp>
#include <cfp/plan/stages/staged_layout.hpp>
#include <cfp/program/stages/stage_mesh.hpp>

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

namespace cfp::inline v0_1 {

namespace detail {

struct stage_figure {
  const char* name;
  double stage_cost::*of;
};
inline constexpr stage_figure stage_figures[] = {{"forward_ms", &stage_cost::forward},
                                                 {"backward_inputs_ms", &stage_cost::backward_inputs},
                                                 {"backward_weights_ms", &stage_cost::backward_weights},
                                                 {"once_ms", &stage_cost::update},
                                                 {"send_forward_ms", &stage_cost::send_forward},
                                                 {"send_backward_ms", &stage_cost::send_backward}};

inline nlohmann::ordered_json to_json(const staged_layout& l, const graph& g, const plan_names& names) {
  nlohmann::ordered_json out;
  out["schedule"] = l.schedule;
  out["micro_batches"] = g.passes;
  for (int s = 0; s < l.stages(); ++s) {
    const auto at = static_cast<std::size_t>(s);
    nlohmann::ordered_json one{{"place", s % l.places},
                               {"begins_with", names.tensor(g.at(s > 0 ? l.first[at - 1] : 0).results[0])}};
    for (const stage_figure& f : stage_figures) one[f.name] = l.costs.empty() ? 0.0 : l.costs[at].*f.of;
    out["each"].push_back(std::move(one));
  }
  return out;
}

/// Reads what `to_json` wrote.
class stages_reader : json_reader<bad_input> {
 public:
  explicit stages_reader(const std::string& where) : json_reader({}, where) {}

  /// `mesh`: the whole one, whose first axis the stages lie along.
  [[nodiscard]] staged_layout read(const json& stages, const graph& g, const mesh_shape& mesh,
                                   const plan_names& names) const {
    only(stages, "'stages'", {"schedule", "micro_batches", "each"}, "plans");
    const json& each = array(member(stages, "'stages'", "each"), "'each' of the stages");
    staged_layout out{without_stages(mesh), mesh.size(0), 1,
                      text(member(stages, "'stages'", "schedule"), "'schedule'")};
    const int stages_there = static_cast<int>(each.size());
    if (stages_there == 0 || stages_there % out.places != 0)
      refuse("has " + std::to_string(stages_there) + " stages on " + std::to_string(out.places) +
             " places: each place must have as many");
    out.chunks = stages_there / out.places;
    static constexpr const char* plain[] = {"gpipe", "1f1b", "interleaved", "zb_h1", "zb_h2"};
    if (std::find(std::begin(plain), std::end(plain), out.schedule) == std::end(plain))
      refuse("follows schedule '" + out.schedule +
             "', and saved plans follow gpipe, 1f1b, interleaved, zb_h1 or zb_h2");
    if (const json& passes = member(stages, "'stages'", "micro_batches"); passes != g.passes)
      refuse("is for " + shown(passes) + " micro-batches, this training has " + std::to_string(g.passes) +
             ": give it as many");
    for (int s = 0; s < stages_there; ++s) read_stage(each[static_cast<std::size_t>(s)], s, g, names, out);
    const pipeline_schedule s = schedule_of(out, g.passes);
    if (s.count() != out.places || s.stages != stages_there)
      refuse("has " + std::to_string(stages_there) + " stages on " + std::to_string(out.places) + " places, schedule " +
             out.schedule + " has " + std::to_string(s.stages) + " on " + std::to_string(s.count()));
    return out;
  }

 private:
  pipeline_schedule schedule_of(const staged_layout& l, int micro_batches) const {
    try {
      return l.schedule_of(micro_batches);
    } catch (const bad_input& e) {
      refuse(e.what());
    }
  }
  void read_stage(const json& one, int stage, const graph& g, const plan_names& names, staged_layout& out) const {
    const std::string owner = "stage " + std::to_string(stage) + " of the plan";
    only(one, owner,
         {"place", "begins_with", "forward_ms", "backward_inputs_ms", "backward_weights_ms", "once_ms",
          "send_forward_ms", "send_backward_ms"},
         "plans");
    const int first = operation_of(text(member(one, owner, "begins_with"), "'begins_with'"), owner, g, names);
    if (member(one, owner, "place") != stage % out.places)
      refuse(owner + " must be on place " + std::to_string(stage % out.places) + ", is on " + shown(one["place"]));
    const int before = out.first.empty() ? 0 : out.first.back();
    if (stage == 0 ? first != 0 : first <= before)
      refuse(owner + " begins with '" + one["begins_with"].get<std::string>() + "', which is " +
             (stage == 0 ? "not the model's first operator" : "not behind what the one before begins with"));
    if (stage > 0) out.first.push_back(first);
    stage_cost& cost = out.costs.emplace_back();
    for (const stage_figure& f : stage_figures) {
      const json& ms = member(one, owner, f.name);
      if (!ms.is_number() || !(ms.get<double>() >= 0 && ms.get<double>() <= 1e9))
        refuse("'" + std::string(f.name) + "' of " + owner + " must be a number from 0 to 1e9, is " + shown(ms));
      cost.*f.of = ms.get<double>();
    }
  }
  int operation_of(const std::string& made, const std::string& owner, const graph& g, const plan_names& names) const {
    for (int o = 0; o < g.size(); ++o)
      if (g.at(o).when == phase::forward && names.tensor(g.at(o).results[0]) == made) return o;
    refuse(owner + " begins with '" + made + "', which no forward operator of this model makes");
  }
};

}  // namespace detail

}  // namespace cfp
