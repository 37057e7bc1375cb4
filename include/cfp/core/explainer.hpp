// What an operator's refusal speaks of, as sentences call it: the operator, its operands, their dimensions, the axes of
// the mesh.
#pragma once

#include <cfp/core/infer.hpp>

namespace cfp::inline v0_1::detail {

struct explainer {
  const operator_view& op;
  const inference& it;
  const list<operand_view, max_operands>& operands;
  const mesh_shape& mesh;

  constexpr std::string_view factor_name(int f) const { return it.bound.r.factors[f].label.view(); }
  constexpr std::string_view dim_name(int operand, int f) const {
    const int at = it.bound.r.operands[operand].dim_of(f);
    return at < 0 ? std::string_view{} : operands[operand].shape->parts[it.bound.given_part[operand][at]];
  }
  constexpr std::string_view axis_name(int a) const { return mesh.axes[a].label.view(); }

  // By its name, or by its rule.
  constexpr void say_operator(sentence& s) const {
    if (op.label.empty()) say(s, "'", op.rule, "': ");
    else say(s, op.label, ": ");
  }
  constexpr void operand(sentence& s, int i) const {
    say(s, "operand ", static_cast<long>(i), operands[i].label.empty() ? "" : " '", operands[i].label,
        operands[i].label.empty() ? " (" : "' (");
    const dimensions& d = *operands[i].shape;
    for (int k = 0; k < d.rank(); ++k) say(s, k ? " " : "", d.parts[k]);
    say(s, ")");
  }

  constexpr void operand(sentence& s, int i, std::string_view before) const {
    say(s, before);
    operand(s, i);
  }
  // One of its dimensions, with its size where that is known.
  constexpr void part(sentence& s, int i, int at, long size) const {
    say(s, " has '", operands[i].shape->parts[at], "'");
    if (size > 0) say(s, " of size ", size);
  }
};

}  // namespace cfp::detail
