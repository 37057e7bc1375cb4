// Why an operator cannot run without communication, in words, with the smallest change that lets it.
#pragma once

#include <cfp/core/binding_explainer.hpp>
#include <cfp/core/conflict_explainer.hpp>

namespace cfp::inline v0_1 {

/// Why an operator cannot run without communication, with the cheapest change that lets it; empty if it can.
constexpr sentence words(const inference& it, const operator_view& op, const list<operand_view, max_operands>& operands,
                         const list<const mesh_shape*, max_operands>& meshes) {
  const mesh_shape none;
  const mesh_shape& mesh = meshes.empty() ? none : *meshes[0];
  const detail::explainer e{op, it, operands, mesh};
  sentence s;
  if (!it.same_mesh) {
    e.say_operator(s);
    int other = 0;
    while (*meshes[other] == mesh) ++other;
    for (const int i : {0, other}) {
      e.operand(s, i, i ? ", " : "");
      say(s, i ? " over (" : " is partitioned over the mesh (");
      detail::say_axes(s, *meshes[i]);
      say(s, ")");
    }
  }
  if (it.bound.problem) return detail::binding_explainer{e}.words();
  if (it.flow.why) return detail::conflict_explainer{e}.words();
  return s;
}

}  // namespace cfp
