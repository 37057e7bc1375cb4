// Why operands do not fit a rule, in words.
#pragma once

#include <cfp/core/explainer.hpp>

namespace cfp::inline v0_1::detail {

struct binding_explainer : explainer {
  constexpr sentence words() const {
    sentence s;
    const binding_problem& w = it.bound.problem;
    say_operator(s);
    switch (w.kind) {
      case binding_problem::unreadable: say_error(s, w.text, op.rule); break;
      case binding_problem::operand_count:
        say(s, "is given ", w.given, w.given == 1 ? " operand" : " operands", ", its rule \"", op.rule, "\" has ",
            w.wanted);
        break;
      case binding_problem::rank:
        operand(s, w.operand);
        say(s, " has ", w.given, w.given == 1 ? " dimension" : " dimensions", ", the rule \"", op.rule, "\" says ",
            w.wanted);
        break;
      case binding_problem::parts:
        if (w.operand >= 0) {
          operand(s, w.operand);
          say(s, " has a dimension of ", w.given, " parts where the rule or another operand has ", w.wanted, " ('",
              w.factor.view(), "')");
        } else {
          say(s, "compound dimensions make ", w.given, " factors, at most ", w.wanted, " fit");
        }
        break;
      case binding_problem::order:
        operand(s, w.operand);
        say(s, " has '", operands[w.operand].shape->parts[w.part], "' as part ", w.given + 1,
            " of a compound dimension, the rule \"", op.rule, "\" as part ", w.wanted + 1,
            "; store it in that order, or call its parts otherwise");
        break;
      case binding_problem::names: names(s, w); break;
      case binding_problem::sizes: sizes(s, w); break;
      case binding_problem::indivisible:
        say(s, "'", w.factor.view(), "' has ", w.given, " elements, which ", w.wanted, " devices do not divide");
        break;
      default: break;
    }
    return s;
  }

  constexpr void names(sentence& s, const binding_problem& w) const {
    operand(s, w.operand);
    part(s, w.operand, w.part, w.given);
    operand(s, w.other, " where ");
    part(s, w.other, w.other_part, w.wanted);
    say(s, ", and the rule \"", op.rule, "\" has one '", w.factor.view().starts_with("..") ? "..." : w.factor.view(),
        "': a transposed or another tensor; if the two are the same, say so: ");
    if (op.traced) say(s, "net.renamed(operand ", static_cast<long>(w.operand), ", \"");
    else say(s, "cfp::renamed<operand ", static_cast<long>(w.operand), ", \"");
    say(s, operands[w.operand].shape->parts[w.part], "\", \"", operands[w.other].shape->parts[w.other_part],
        op.traced ? "\")" : "\">");
  }

  constexpr void sizes(sentence& s, const binding_problem& w) const {
    operand(s, w.operand);
    part(s, w.operand, w.part, w.given);
    if (w.other >= 0) {
      operand(s, w.other, ", ");
      part(s, w.other, w.other_part, w.wanted);
    } else {
      say(s, ", but the factors of the rule \"", op.rule, "\" make ", w.wanted, ":");
      for (int k = 0; k < it.bound.r.operands[w.operand].factors.size(); ++k) {
        const int f = it.bound.r.operands[w.operand].factors[k];
        if (it.bound.given_part[w.operand][k] != w.part || it.bound.sizes[f] == 0) continue;
        say(s, " ", factor_name(f), "=", it.bound.sizes[f]);
      }
    }
  }
};

}  // namespace cfp::detail
