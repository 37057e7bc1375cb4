// Binding: a rule meets the dimensions of its operands. Where an operand writes one factor as a compound dimension, the
// factor becomes its parts, in the whole rule.
#pragma once

#include <cfp/core/binding.hpp>
#include <cfp/core/cut.hpp>
#include <cfp/core/explain.hpp>
#include <cfp/core/propagate.hpp>

namespace cfp::inline v0_1 {

/// Whether operands have as many dimensions as a rule says, before anything else is asked.
constexpr binding_problem fits(const rule_outline& o, const list<operand_view, max_operands>& operands) {
  if (o.problem) return {binding_problem::unreadable, -1, -1, 0, 0, {}, o.problem};
  if (o.written.size() != operands.size())
    return {binding_problem::operand_count, -1, -1, operands.size(), o.written.size(), {}, {}};
  list<int, max_operands> ranks;
  for (const operand_view& v : operands) ranks.push(v.shape->written());
  const int dots = o.ellipsis(ranks);
  for (int i = 0; i < ranks.size(); ++i)
    if (const int wanted = o.written[i] + (o.dots[i] ? dots : 0); ranks[i] != wanted)
      return {binding_problem::rank, i, -1, ranks[i], wanted, {}, {}};
  return {};
}

namespace detail {

// A part of a compound dimension that is called as the rule calls another one of that dimension.
constexpr binding_problem out_of_order(const rule& r, int operand, int dim, const dimensions& shape) {
  const pattern& p = r.operands[operand];
  const int from = p.group.find(static_cast<signed char>(dim)), first = shape.first(dim);
  for (int k = 0; k < shape.count(dim); ++k)
    for (int j = 0; j < shape.count(dim); ++j)
      if (j != k && same(shape.parts[first + k], r.factors[p.factors[from + j]].label.view()) &&
          !same(shape.parts[first + j], r.factors[p.factors[from + j]].label.view()))
        return {binding_problem::order, operand, -1, k, j, r.factors[p.factors[from + j]].label, {}, first + k, -1};
  return {};
}

// Where factors have their names and sizes from: the first operand that has them, its own names before lent ones.
struct factor_sources {
  signed char named_by[max_factors]{}, named_part[max_factors]{}, sized_by[max_factors]{}, sized_part[max_factors]{};

  // What operand `i` calls factor `f` and how long it is there; what does not agree.
  constexpr binding_problem take(const dimensions& shape, int part, int i, int f, std::string_view& label, bool& lent,
                                 long& size) {
    const std::string_view called = shape.parts[part];
    if (!label.empty() && !lent && !shape.lent[part] && !same(label, called))
      return {binding_problem::names, i, named_by[f], shape.sizes[part], size, {}, {}, part, named_part[f]};
    if (label.empty() || (lent && !shape.lent[part])) {
      label = called;
      lent = shape.lent[part];
      named_by[f] = static_cast<signed char>(i);
      named_part[f] = static_cast<signed char>(part);
    }
    const long here = shape.sizes[part];
    if (size != 0 && here != 0 && here != size)
      return {binding_problem::sizes, i, sized_by[f], here, size, {}, {}, part, sized_part[f]};
    if (size == 0) {
      size = here;
      sized_by[f] = static_cast<signed char>(i);
      sized_part[f] = static_cast<signed char>(part);
    }
    return {};
  }
};

constexpr int members(const pattern& p, int dim) {
  int n = 0;
  for (signed char g : p.group) n += g == dim;
  return n;
}

struct binder {
  const rule& r;
  const list<operand_view, max_operands>& operands;
  const list<given_size, 4>& given;
  binding out{};
  list<int, max_factors> parts{}, first{};  // of each factor: how many it is cut into, and the first of them
  factor_sources from{};

  // How many parts operands write each factor in; false where they do not agree.
  constexpr bool count_parts() {
    for (int f = 0; f < r.factors.size(); ++f) parts.push(1);
    int total = r.factors.size();
    for (int i = 0; i < operands.size(); ++i) {
      const pattern& p = r.operands[i];
      for (int d = 0; d < operands[i].shape->written() && !out.problem; ++d) {
        const int f = p.factors[p.group.find(static_cast<signed char>(d))];
        const int have = operands[i].shape->count(d), want = members(p, d);
        if (have == 1) continue;
        if (want == 1 ? parts[f] > 1 && parts[f] != have : have != want)
          out.problem = {binding_problem::parts, i, -1, have, want == 1 ? parts[f] : want, r.factors[f].label, {}};
        else if (want > 1) out.problem = out_of_order(r, i, d, *operands[i].shape);
        else if (parts[f] == 1) total += have - 1, parts[f] = have;
      }
    }
    if (!out.problem && total > max_factors) out.problem = {binding_problem::parts, -1, -1, total, max_factors, {}, {}};
    return !out.problem;
  }

  constexpr void cut() {
    out.r = cut_factors(r, parts, first);
    for (int f = 0; f < out.r.factors.size(); ++f)
      out.sizes.push(0), out.labels.push({}), out.rule_labels.push({}), out.lent.push(false);
    for (int f = 0; f < r.factors.size(); ++f)
      if (parts[f] == 1 && !r.factors[f].label.view().starts_with(".."))
        out.rule_labels[first[f]] = r.factors[f].label.view();
    for (int f = 0; f < out.r.factors.size(); ++f)
      for (const given_size& g : given)
        if (same(g.factor, out.r.factors[f].label.view())) out.sizes[f] = g.size, from.sized_by[f] = -1;
  }

  // What the dimensions of an operand are in the cut rule: their factors, names, sizes and partition.
  constexpr void take(int i) {
    const pattern& p = r.operands[i];
    const pattern& cut = out.r.operands[i];
    const dimensions& shape = *operands[i].shape;
    partition q = partition::replicated(cut.factors.size());
    for (int a = 0; a < max_axes; ++a) q.partial[a] = operands[i].held->partial[a];
    for (int d = 0; d < shape.written(); ++d) {
      const int have = shape.count(d), n = members(cut, d);
      int at = cut.group.find(static_cast<signed char>(d));
      for (int k = 0; k < have; ++k) {
        const int part = shape.first(d) + k;
        // A part of the operand is a part of a factor, a factor (perhaps cut), or the whole dimension, fused.
        const int spans = have == n   ? 1
                          : have == 1 ? n
                                      : parts[p.factors[p.group.find(static_cast<signed char>(d)) + k]];
        q.dims[at] = operands[i].held->dims[part];
        for (int j = at; j < at + spans; ++j) out.given_part[i][j] = part;
        const int f = cut.factors[at];
        if (spans == 1 && !out.problem) {
          out.problem = from.take(shape, part, i, f, out.labels[f], out.lent[f], out.sizes[f]);
          if (out.problem) out.problem.factor = out.r.factors[f].label;
        }
        at += spans;
      }
    }
    out.operands.push(q);
  }

  // A dimension that is fused, factors [k, end) of an operand: its size is their product.
  constexpr void take_fused(int i, int k, int end) {
    const pattern& cut = out.r.operands[i];
    const dimensions& shape = *operands[i].shape;
    const int part = out.given_part[i][k];
    const long size = shape.sizes[part];
    long product = 1;
    int unknown = -1, unknowns = 0;
    for (int j = k; j < end && !out.problem; ++j) {
      const int f = cut.factors[j];
      if (out.sizes[f] == 0) unknown = f, ++unknowns;
      else product *= out.sizes[f];
      // One name for all parts says nothing of them; but who has them elsewhere means another dimension.
      if (out.labels[f].empty() || out.lent[f] || shape.find(out.labels[f]) < 0) continue;
      const name called = out.r.factors[f].label;
      const int by = from.named_by[f], as = from.named_part[f];
      out.problem = {binding_problem::names, i, by, size, out.sizes[f], called, {}, part, as};
    }
    if (size == 0 || out.problem) return;
    if (unknowns == 1 && size % product == 0) out.sizes[unknown] = size / product;
    else if ((unknowns == 0 && size != product) || size % product != 0)
      out.problem = {binding_problem::sizes, i, -1, size, product, out.r.factors[cut.factors[k]].label, {}, part};
  }

  constexpr binding bind() {
    if (!count_parts()) return out;
    cut();
    for (int i = 0; i < operands.size(); ++i) take(i);
    for (int i = 0; i < operands.size(); ++i) {
      const int n = out.r.operands[i].factors.size();
      for (int k = 0, end = 0; k < n && !out.problem; k = end) {
        while (end < n && out.given_part[i][end] == out.given_part[i][k]) ++end;
        if (end - k > 1) take_fused(i, k, end);
      }
    }
    for (int f = 0; f < out.r.factors.size(); ++f)
      if (out.labels[f].empty()) out.labels[f] = out.rule_labels[f], out.lent[f] = true;
    return out;
  }
};

}  // namespace detail

/// Binds a rule (its "..." expanded) to operands that `fits` found to have its dimensions.
constexpr binding bind(const rule& r, const list<operand_view, max_operands>& operands,
                       const list<given_size, 4>& given = {}) {
  return detail::binder{r, operands, given}.bind();
}

/// Dimensions of a result, named as the operands name them; a name that is taken already, as the rule does (and it is
/// lent, as a name that only the rule has). Where that is taken too the name stands twice, and `readable` is false.
constexpr dimensions result_dimensions(const binding& b, int result) {
  dimensions d;
  const pattern& p = b.r.results[result];
  for (int i = 0; i < p.factors.size(); ++i) {
    const int f = p.factors[i];
    std::string_view label = b.labels[f];
    const bool taken = d.find(label) >= 0;
    if (taken) label = b.rule_labels[f];
    d.readable = d.readable && !label.empty() && d.find(label) < 0;
    d.push(label, b.sizes[f], p.group[i], taken || b.lent[f]);
  }
  return d;
}

}  // namespace cfp
