// A saved plan together with the training graph it is of, opened to be written in another form: nothing is run, and no
// device is asked for.
#pragma once

#include <cfp/block/decisions.hpp>
#include <cfp/export/plan_file.hpp>
#include <cfp/model/checked.hpp>
#include <cfp/model/differentiate.hpp>
#include <cfp/model/refine.hpp>
#include <cfp/program/find_saved.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace cfp::inline v0_1 {

struct opened_plan {
  std::string model;  ///< as the file has it
  graph g;            ///< differentiated
  mesh_shape mesh;    ///< that of a stage, if there are
  decision_graph decisions;
  std::vector<int> choices;
  sharding shards;
  std::optional<staged_layout> stages;
  double predicted_ms = 0;
  long real_bytes = 4;  ///< of a number that is not wide
};

/// Reads what `to_json` wrote of a model. `id`: its name and sizes; `real_bytes`: what a number takes. Throws bad_input
/// as `read_plan` does.
inline opened_plan open_plan(std::string_view text, const std::string& where, const std::string& id,
                             const graph& forward, const training& how, const mesh_shape& mesh, long real_bytes) {
  opened_plan out;
  out.model = id;
  out.real_bytes = real_bytes;
  out.mesh = has_stages(mesh) ? without_stages(mesh) : mesh;
  out.g = differentiate(refine(checked(forward)), checked(how));
  const auto says = [&](std::string_view what) { return text.find(what) != std::string_view::npos; };
  const bool on_host = says(" on the host"), regathered = says("/regathered");
  const auto rest = regathered ? axis_choice::regathered : axis_choice::scattered;
  const block_structure blocks = parallel_blocks(out.g);
  if (on_host || regathered || says(" recomputed")) {
    const segmentation parts = segments(out.g, blocks);
    const recomputation again(out.g, blocks, parts, find_saved(out.g, target(real_bytes)));
    out.decisions = cfp::decisions(out.g, blocks, out.mesh, rest, {}, &again,
                                   on_host ? keeping::weights_on_host : keeping::on_device);
  } else {
    out.decisions = cfp::decisions(out.g, blocks, out.mesh, rest);
  }
  saved_plan saved = read_plan(text, where, id, out.g, mesh, out.decisions);
  out.choices = std::move(saved.choices);
  out.stages = std::move(saved.stages);
  out.predicted_ms = saved.predicted_ms;
  out.shards = shard(out.g, out.decisions, out.choices);
  return out;
}

}  // namespace cfp
