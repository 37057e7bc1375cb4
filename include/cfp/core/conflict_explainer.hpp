// Why operands that fit a rule still cannot meet without communication, in words, with the change that mends it.
#pragma once

#include <cfp/core/mend.hpp>

namespace cfp::inline v0_1::detail {

struct conflict_explainer : explainer {
  constexpr sentence words() const {
    sentence s;
    const conflict& w = it.flow.why;
    say_operator(s);
    operand(s, w.operand);
    switch (w.kind) {
      case conflict::disagree: disagreement(s, w); break;
      case conflict::whole_split: whole_split(s, w); break;
      case conflict::halo: halo(s, w); break;
      case conflict::carry:
        say(s, " splits '", dim_name(w.operand, w.factor), "' over '", axis_name(w.axis),
            "', which is scanned: a carry from each device to the next is owed");
        break;
      case conflict::partial_operand: partial_operand(s, w); break;
      case conflict::not_major:
        say(s, " is split by axes in another order than the mesh has them; write them in the order of the mesh");
        break;
      default: break;
    }
    if (w.axis >= 0 && w.kind != conflict::not_major) mending(s, w.axis);
    return s;
  }

  constexpr void disagreement(sentence& s, const conflict& w) const {
    const placement other = it.bound.operands[w.other].on(w.axis);
    say(s, " splits '", dim_name(w.operand, w.factor), "' over '", axis_name(w.axis), "', but ");
    operand(s, w.other);
    if (other.kind == placement::split) {
      const int f = it.bound.r.operands[w.other].factors[other.dim];
      say(s, " splits '", dim_name(w.other, f), "' over it");
      if (f != w.factor && dim_name(w.other, f) == dim_name(w.operand, w.factor))
        say(s, " (the rule's '", factor_name(w.factor), "' and '", factor_name(f), "')");
    } else {
      say(s, " holds all of it");
    }
    if (dim_name(w.other, w.factor) != dim_name(w.operand, w.factor) && !dim_name(w.other, w.factor).empty())
      say(s, " ('", dim_name(w.other, w.factor), "' there)");
  }

  constexpr void whole_split(sentence& s, const conflict& w) const {
    say(s, " splits '", dim_name(w.operand, w.factor), "' over '", axis_name(w.axis), "', but '", factor_name(w.factor),
        "' must stay whole");
    if (factor_name(w.factor) != dim_name(w.operand, w.factor) &&
        it.bound.r.operands[w.operand].factors.size() > operands[w.operand].shape->rank())
      say(s, " and is its major part; name the parts of the dimension, \"(", factor_name(w.factor),
          " ...)\", and split another");
  }

  constexpr void halo(sentence& s, const conflict& w) const {
    say(s, " splits '", dim_name(w.operand, w.factor), "' over '", axis_name(w.axis), "', and the rule reaches '",
        factor_name(it.bound.r.factors[w.factor].window), "' positions over the border: a halo of ");
    if (const long k = it.bound.sizes[it.bound.r.factors[w.factor].window]; k > 0) say(s, k - 1);
    else say(s, "'", factor_name(it.bound.r.factors[w.factor].window), "' - 1");
    say(s, " positions is owed by the neighbours");
  }

  constexpr void partial_operand(sentence& s, const conflict& w) const {
    if (it.bound.operands[w.operand].on(w.axis).combine != reduction::sum) {
      say(s, " holds parts of a maximum or minimum over '", axis_name(w.axis), "', which must be completed first");
      return;
    }
    say(s, " is a partial sum over '", axis_name(w.axis), "', and the operator ",
        it.bound.r.combine != reduction::sum ? "reduces by maximum or minimum"
        : op.linear == linearity::none       ? "is not linear"
        : op.linear == linearity::all        ? "is linear only if all operands are partial alike"
                                             : "is linear in one operand at a time");
  }

  constexpr void mending(sentence& s, int axis) const {
    const mend m = mender{*this}.cheapest(axis);
    if (!m.found) return;
    say(s, "; mend: ", m.words.view());
    if (m.collectives == 0) say(s, ", which sends nothing");
    else if (m.sized) say(s, ", ", m.bytes, " bytes per device");
    if (m.result_partial) say(s, " (the result is then a partial sum)");
  }
};

}  // namespace cfp::detail
