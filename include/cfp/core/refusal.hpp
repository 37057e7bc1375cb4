// Why an operator cannot run without communication, in words, with the smallest change that lets it.
#pragma once

#include <cfp/core/convert.hpp>
#include <cfp/core/infer.hpp>

namespace cfp::inline v0_1 {

namespace detail {

struct mend {
  bool found = false, sized = false;
  int changed = 0;  // operands
  long bytes = 0;
  int collectives = 0;
  int crowded = 0;  // dimensions of theirs that several axes split then
  bool result_partial = false;
  sentence words;
};

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

  // An operand's partition with one axis doing what the assignment of a factor to it asks; axes stand in mesh order.
  constexpr partition changed(int i, int axis, int f) const {
    partition p = it.bound.operands[i];
    partition out = p;
    for (int d = 0; d < p.rank(); ++d) {
      out.dims[d] = {};
      for (signed char a : p.dims[d])
        if (a != axis) out.dims[d].push(a);
    }
    out.partial[axis] = {};
    const int d = f >= 0 ? it.bound.r.operands[i].dim_of(f) : -1;
    if (d >= 0) {
      int at = 0;
      while (at < out.dims[d].size() && out.dims[d][at] < axis) ++at;
      out.dims[d].insert(at, static_cast<signed char>(axis));
    }
    if (f == assignment::partial) out.partial[axis] = {true, reduction::sum};
    return out;
  }

  // The change along one axis that lets the operator run and touches fewest operands, then sends least; other axes stay
  // as they are.
  constexpr mend cheapest(int axis) const {
    mend best;
    const rule& r = it.bound.r;
    for (int f = assignment::partial; f < r.factors.size(); ++f) {
      if (f >= 0 && r.stays_together(f)) continue;
      if (f == assignment::partial && (op.linear != linearity::all || r.combine != reduction::sum)) continue;
      mend m;
      m.found = m.sized = true;
      for (int i = 0; i < operands.size() && m.found; ++i) {
        const partition &now = it.bound.operands[i], need = changed(i, axis, f);
        if (now == need) continue;
        if (need.partial[axis].owed) m.found = false;  // what is complete is not made parts of a sum again
        if (!m.found) break;
        ++m.changed;
        for (const auto& axes : need.dims) m.crowded += axes.size() > 1;
        extents shape;
        for (int k = 0; k < now.rank(); ++k) {
          const long size = it.bound.sizes[r.operands[i].factors[k]];
          m.sized = m.sized && size > 0;
          shape.push(size > 0 ? size : 64 * mesh.devices());  // to compare by, not to tell
        }
        m.found = divides(need, shape, mesh);
        if (!m.found) break;
        const conversion c = convert(now, need, shape, operands[i].element_bytes, mesh);
        m.found = c.possible;
        for (const conversion_step& s : c.steps) {
          say(m.words, m.words.empty() ? "" : " and ");
          step(m.words, s, i);
        }
        m.bytes += c.bytes;
        m.collectives += c.collectives();
      }
      if (f >= 0)
        for (const pattern& p : r.results) m.result_partial = m.result_partial || p.dim_of(f) < 0;
      m.result_partial = m.result_partial || f == assignment::partial;
      if (m.words.empty() || !m.found) continue;
      const bool better = m.changed != best.changed           ? m.changed < best.changed
                          : m.bytes != best.bytes             ? m.bytes < best.bytes
                          : m.collectives != best.collectives ? m.collectives < best.collectives
                          : m.crowded != best.crowded         ? m.crowded < best.crowded
                                                              : m.result_partial < best.result_partial;
      if (!best.found || better) best = m;
    }
    return best;
  }

  constexpr void step(sentence& s, const conversion_step& c, int i) const {
    const auto dim = [&](int d) { return dim_name(i, it.bound.r.operands[i].factors[d]); };
    const long n = i;
    using step = conversion_step;
    switch (c.kind) {
      case step::all_reduce: say(s, "all_reduce operand ", n); break;
      case step::all_gather: say(s, "all_gather '", dim(c.dim), "' of operand ", n); break;
      case step::reduce_scatter: say(s, "reduce_scatter operand ", n, " into '", dim(c.dim), "'"); break;
      case step::all_to_all: say(s, "all_to_all operand ", n, " from '", dim(c.dim), "' to '", dim(c.to), "'"); break;
      case step::slice: say(s, "split '", dim(c.dim), "' of operand ", n); break;
      default: say(s, "hold operand ", n, " as parts of a sum"); break;
    }
    say(s, " over '", axis_name(c.axis), "'");
  }

  constexpr sentence conflict_words() const {
    sentence s;
    const conflict& w = it.flow.why;
    say_operator(s);
    operand(s, w.operand);
    switch (w.kind) {
      case conflict::disagree: {
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
        break;
      }
      case conflict::whole_split:
        say(s, " splits '", dim_name(w.operand, w.factor), "' over '", axis_name(w.axis), "', but '",
            factor_name(w.factor), "' must stay whole");
        if (factor_name(w.factor) != dim_name(w.operand, w.factor) &&
            it.bound.r.operands[w.operand].factors.size() > operands[w.operand].shape->rank())
          say(s, " and is its major part; name the parts of the dimension, \"(", factor_name(w.factor),
              " ...)\", and split another");
        break;
      case conflict::halo:
        say(s, " splits '", dim_name(w.operand, w.factor), "' over '", axis_name(w.axis), "', and the rule reaches '",
            factor_name(it.bound.r.factors[w.factor].window), "' positions over the border: a halo of ");
        if (const long k = it.bound.sizes[it.bound.r.factors[w.factor].window]; k > 0) say(s, k - 1);
        else say(s, "'", factor_name(it.bound.r.factors[w.factor].window), "' - 1");
        say(s, " positions is owed by the neighbours");
        break;
      case conflict::carry:
        say(s, " splits '", dim_name(w.operand, w.factor), "' over '", axis_name(w.axis),
            "', which is scanned: a carry from each device to the next is owed");
        break;
      case conflict::partial_operand:
        if (it.bound.operands[w.operand].on(w.axis).combine != reduction::sum) {
          say(s, " holds parts of a maximum or minimum over '", axis_name(w.axis), "', which must be completed first");
          break;
        }
        say(s, " is a partial sum over '", axis_name(w.axis), "', and the operator ",
            it.bound.r.combine != reduction::sum ? "reduces by maximum or minimum"
            : op.linear == linearity::none       ? "is not linear"
            : op.linear == linearity::all        ? "is linear only if all operands are partial alike"
                                                 : "is linear in one operand at a time");
        break;
      case conflict::not_major:
        say(s, " is split by axes in another order than the mesh has them; write them in the order of the mesh");
        break;
      default: break;
    }
    if (w.axis >= 0 && w.kind != conflict::not_major) {
      if (const mend m = cheapest(w.axis); m.found) {
        say(s, "; mend: ", m.words.view());
        if (m.collectives == 0) say(s, ", which sends nothing");
        else if (m.sized) say(s, ", ", m.bytes, " bytes per device");
        if (m.result_partial) say(s, " (the result is then a partial sum)");
      }
    }
    return s;
  }

  constexpr sentence binding_words() const {
    sentence s;
    const binding_problem& w = it.bound.problem;
    say_operator(s);
    switch (w.kind) {
      case binding_problem::unreadable: say(s, w.what, ", column ", w.given, " of \"", op.rule, "\""); break;
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
      case binding_problem::names:
        operand(s, w.operand);
        part(s, w.operand, w.part, w.given);
        operand(s, w.other, " where ");
        part(s, w.other, w.other_part, w.wanted);
        say(s, ", and the rule \"", op.rule, "\" has one '", w.factor.view(),
            "': a transposed or another tensor; if the two are the same, say so: cfp::renamed<operand ",
            static_cast<long>(w.operand), ", \"", operands[w.operand].shape->parts[w.part], "\", \"",
            operands[w.other].shape->parts[w.other_part], "\">");
        break;
      case binding_problem::sizes:
        operand(s, w.operand);
        part(s, w.operand, w.part, w.given);
        if (w.other >= 0) {
          operand(s, w.other, ", ");
          part(s, w.other, w.other_part, w.wanted);
        } else {
          say(s, ", but its factors make ", w.wanted, ":");
          for (int k = 0; k < it.bound.r.operands[w.operand].factors.size(); ++k) {
            const int f = it.bound.r.operands[w.operand].factors[k];
            if (it.bound.given_part[w.operand][k] != w.part || it.bound.sizes[f] == 0) continue;
            say(s, " ", factor_name(f), "=", it.bound.sizes[f]);
          }
        }
        break;
      case binding_problem::indivisible:
        say(s, "'", w.factor.view(), "' has ", w.given, " elements, which ", w.wanted, " devices do not divide");
        break;
      default: break;
    }
    return s;
  }
};

}  // namespace detail

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
  if (it.bound.problem) return e.binding_words();
  if (it.flow.why) return e.conflict_words();
  return s;
}

}  // namespace cfp
