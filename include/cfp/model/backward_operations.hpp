// The operations that take the gradients of an operation's results to those of its operands. Gradient rules keep the
// forward rule's factors, so a mesh axis that splits a factor forward splits the same factor backward.
#pragma once

#include <cfp/core/cut.hpp>
#include <cfp/core/shape_error.hpp>
#include <cfp/model/gradient_graph.hpp>

namespace cfp::inline v0_1::detail {

struct backward_operations {
  gradient_graph& sums;
  graph& g = sums.g;

  constexpr void add(int forward) {
    const operation o = g.at(forward);
    list<int, max_results> dz;
    bool any = false;
    for (int r : o.results) {
      dz.push(sums.total(r));
      any = any || dz.back() >= 0;
    }
    if (!any || o.op->statistic) return;
    if (o.op->gradient_steps == 0 && o.r.combine != reduction::sum)
      throw shape_error(said_of(
          o,
          "a maximum or minimum has no gradient of its own: mark the operator `statistic`, and let the operator "
          "that takes it own the gradient"));
    if (o.op->gradient_steps > 0) return written(forward, dz);
    if (o.op->body == op_body::routine)
      throw shape_error(
          said_of(o, "a routine has no gradient of its own: give the operator a `gradient`, or mark it `statistic`"));
    const pattern z = o.r.results[0];
    for (int i = 0; i < o.operands.size(); ++i) {
      if (i == o.op->index_operand || !sums.wants(o.operands[i])) continue;
      if (o.op->body == op_body::pieces) {
        emit(forward, info<piece_t>, {{z}, 1}, {{dz[0]}, 1}, i, true);
      } else if (o.op->body == op_body::product) {
        emit(forward, *o.op, {{z, o.r.operands[1 - i]}, 2}, {{dz[0], o.operands[1 - i]}, 2}, i, false);
      } else if (o.op->unit && o.op->index_operand >= 0) {
        const int k = o.op->index_operand;
        emit(forward, info<scatter_add_t>, {{z, o.r.operands[k]}, 2}, {{dz[0], o.operands[k]}, 2}, i, false);
      } else if (o.op->unit) {
        emit(forward, info<copy_t>, {{z}, 1}, {{dz[0]}, 1}, i, false);
      } else if (o.op->slopes[static_cast<std::size_t>(i)]) {
        list<pattern, max_operands> patterns{{z}, 1};
        list<int, max_operands> operands{{dz[0]}, 1};
        for (const pattern& p : o.r.operands) patterns.push(p);
        for (int v : o.operands) operands.push(v);
        emit(forward, *o.op->slopes[static_cast<std::size_t>(i)], patterns, operands, i, true);
      }
    }
  }

 private:
  constexpr sentence said_of(const operation& o, const char* what) const {
    sentence why;
    say_place(why, g[o.results[0]].at);
    say(why, g[o.results[0]].label.view(), ": ", what);
    return why;
  }

  // A gradient operator whose rule is made of patterns of the forward rule.
  constexpr void emit(int forward, const op_info& op, const list<pattern, max_operands>& patterns,
                      const list<int, max_operands>& operands, int target, bool keep_marks) {
    operation o;
    const operation from = g.at(forward);
    o.op = &op;
    o.r.factors = from.r.factors;
    o.sizes = from.sizes, o.first = from.first, o.whole = from.whole;
    o.r.operands = patterns;
    o.r.results.push(from.r.operands[target]);
    if (keep_marks) o.r.coordinates = from.r.coordinates;
    else
      for (factor& f : o.r.factors) f.part_of = -1;
    drop_unused(o);
    o.operands = operands;
    if (op.scalars == from.op->scalars) o.scalars = from.scalars;
    o.when = phase::backward;
    o.origin = forward;
    const int result = sums.gradient_value(from.operands[target], ".grad");
    g[result].type = stored_as(g, o, 0);
    o.results.push(result);
    g.add(o);
    sums.contribute(from.operands[target], result);
  }

  // Factors that stand nowhere in the new rule would look like reductions.
  static constexpr void drop_unused(operation& o) {
    signed char renamed[max_factors] = {};
    rule out;
    factor_sizes sizes, first, whole;
    for (int f = 0; f < o.r.factors.size(); ++f) {
      bool used = o.r.coordinate_of(f) >= 0;
      for (const pattern& p : o.r.operands) used = used || p.dim_of(f) >= 0;
      for (const pattern& p : o.r.results) used = used || p.dim_of(f) >= 0;
      renamed[f] = static_cast<signed char>(out.factors.size());
      if (!used) continue;
      out.factors.push(o.r.factors[f]);
      sizes.push(o.sizes[f]);
      if (!o.first.empty()) first.push(o.first[f]), whole.push(o.whole[f]);
    }
    const auto rename = [&](const pattern& p) {
      pattern q;
      q.group = p.group;
      for (signed char f : p.factors) q.factors.push(renamed[f]);
      return q;
    };
    for (const pattern& p : o.r.operands) out.operands.push(rename(p));
    for (const pattern& p : o.r.results) out.results.push(rename(p));
    for (signed char f : o.r.coordinates) out.coordinates.push(renamed[f]);
    out.combine = o.r.combine;
    o.r = out;
    o.sizes = sizes, o.first = first, o.whole = whole;
  }

  // Gradient written out as steps.
  constexpr void written(int forward, const list<int, max_results>& dz) {
    const operation from = g.at(forward);
    list<int, 8> steps;
    for (int s = 0; s < from.op->gradient_steps; ++s) {
      const gradient_step& step = from.op->gradient[s];
      operation o = bound(from, step);
      for (const gradient_source& source : step.operands) {
        switch (source.from) {
          case gradient_source::operand: o.operands.push(from.operands[source.index]); break;
          case gradient_source::result: o.operands.push(from.results[source.index]); break;
          case gradient_source::gradient:
            o.operands.push(dz[source.index] >= 0 ? dz[source.index] : sums.zero(from.results[source.index]));
            break;
          case gradient_source::step: o.operands.push(steps[source.index]); break;
        }
      }
      drop_unused(o);
      if (step.op->scalars == from.op->scalars) o.scalars = from.scalars;
      o.when = phase::backward;
      o.origin = forward;
      const int out = result_of(from, step, o);
      g[out].type = stored_as(g, o, 0);
      o.results.push(out);
      steps.push(out);
      g.add(o);
    }
  }

  // Whether a factor is the one of that name, or what it was cut into.
  static constexpr bool is_part(std::string_view have, std::string_view label) {
    return have == label || (have.starts_with(label) && have[label.size()] == '.');
  }

  // A step's operation: labels of its rule name factors of the (refined) forward rule.
  static constexpr operation bound(const operation& from, const gradient_step& step) {
    int ellipsis = 0;
    for (const factor& f : from.r.factors)
      if (const std::string_view l = f.label.view(); l.starts_with("..") && l[2] - '0' >= ellipsis)
        ellipsis = l[2] - '0' + 1;  // perhaps cut since
    const rule text = parse(step.rule, ellipsis);
    operation o;
    o.op = step.op;
    o.r.factors = from.r.factors;
    for (factor& f : o.r.factors) {
      f.one_hot = f.whole = false, f.part_of = -1;
      f.scan = f.scan && step.op->body == op_body::scan;
    }
    o.sizes = from.sizes, o.first = from.first, o.whole = from.whole;
    const auto translate = [&](const pattern& p) {
      pattern out;
      for (int i = 0; i < p.factors.size(); ++i) {
        const std::string_view label = text.factors[p.factors[i]].label.view();
        for (int f = 0; f < from.r.factors.size(); ++f) {
          if (!is_part(from.r.factors[f].label.view(), label)) continue;
          out.factors.push(static_cast<signed char>(f));
          out.group.push(p.group[i]);
          if (text.factors[p.factors[i]].whole) o.r.factors[f].whole = true;
        }
      }
      drop_ones(o.sizes, out);  // as the forward rule's were, when it was refined
      return out;
    };
    for (const pattern& p : text.operands) o.r.operands.push(translate(p));
    for (const pattern& p : text.results) o.r.results.push(translate(p));
    for (signed char c : text.coordinates) {
      const int which = o.r.coordinates.size();
      for (int f = 0; f < from.r.factors.size(); ++f) {
        if (!is_part(from.r.factors[f].label.view(), text.factors[c].label.view())) continue;
        if (o.r.coordinates.size() == which) o.r.coordinates.push(static_cast<signed char>(f));
        else o.r.factors[f].part_of = static_cast<signed char>(which);
      }
    }
    return o;
  }

  constexpr int result_of(const operation& from, const gradient_step& step, const operation& o) {
    if (const int target = step.targets[0]; target >= 0) {
      const int out = sums.gradient_value(from.operands[target], ".grad");
      sums.contribute(from.operands[target], out);
      return out;
    }
    const int out = sums.gradient_value(from.results[0], ".grad.row");
    g[out].shape = {};
    g[out].dims = {};
    g[out].group = {};
    for (int i = 0; i < o.r.results[0].factors.size(); ++i) {
      const int f = o.r.results[0].factors[i];
      g[out].shape.push(o.sizes[f]);
      g[out].group.push(static_cast<signed char>(i));
      g[out].dims.push(factor_name(g, o, f));
    }
    return out;
  }
};

}  // namespace cfp::detail
