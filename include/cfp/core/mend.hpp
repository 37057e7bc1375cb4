// The smallest change that lets an operator run without communication of its own.
#pragma once

#include <cfp/core/convert.hpp>
#include <cfp/core/explainer.hpp>

namespace cfp::inline v0_1::detail {

struct mend {
  bool found = false, sized = false;
  int changed = 0;  // operands
  long bytes = 0;
  int collectives = 0;
  int crowded = 0;  // dimensions of theirs that several axes split then
  bool result_partial = false;
  sentence words;
};

// Looks for it.
struct mender : explainer {
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
};

}  // namespace cfp::detail
