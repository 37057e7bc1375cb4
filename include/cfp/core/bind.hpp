// Binding: a rule meets the dimensions of its operands. Where an operand writes one factor as a compound dimension, the
// factor becomes its parts, in the whole rule.
#pragma once

#include <cfp/core/cut.hpp>
#include <cfp/core/dims.hpp>
#include <cfp/core/explain.hpp>
#include <cfp/core/propagate.hpp>

namespace cfp::inline v0_1 {

/// Why a rule and its operands do not fit.
struct binding_problem {
  enum kind_t : std::uint8_t { nothing, unreadable, operand_count, mesh, rank, parts, sizes } kind = nothing;
  int operand = -1, other = -1;
  long given = 0, wanted = 0;  ///< counts or sizes; unreadable: `given` is the column
  name factor;
  const char* what = nullptr;  ///< unreadable

  constexpr explicit operator bool() const { return kind != nothing; }
};

/// A tensor as an operator sees it.
struct operand_view {
  const dimensions* shape = nullptr;
  const partition* held = nullptr;
};

struct binding {
  rule r;                                  ///< with compound factors cut
  factor_sizes sizes;                      ///< 0: not known
  list<std::string_view, max_factors> labels;  ///< what the operands call the factors
  list<std::string_view, max_factors> rule_labels;  ///< what the rule calls them; empty for parts of one and for "..."
  list<partition, max_operands> operands;  ///< over the cut dimensions
  binding_problem problem;

  /// Position of a factor's dimension among an operand's parts as they were given.
  int given_part[max_operands][max_dims]{};
};

/// Whether operands have as many dimensions as a rule says, before anything else is asked.
constexpr binding_problem fits(const rule_outline& o, const list<operand_view, max_operands>& operands) {
  if (o.problem) return {binding_problem::unreadable, -1, -1, o.problem.column, 0, {}, o.problem.what};
  if (o.written.size() != operands.size()) return {binding_problem::operand_count, -1, -1, operands.size(), o.written.size(), {}, nullptr};
  list<int, max_operands> ranks;
  for (const operand_view& v : operands) ranks.push(v.shape->written());
  const int dots = o.ellipsis(ranks);
  for (int i = 0; i < ranks.size(); ++i)
    if (const int wanted = o.written[i] + (o.dots[i] ? dots : 0); ranks[i] != wanted)
      return {binding_problem::rank, i, -1, ranks[i], wanted, {}, nullptr};
  return {};
}

/// Binds a rule (its "..." expanded) to operands that `fits` found to have its dimensions.
constexpr binding bind(const rule& r, const list<operand_view, max_operands>& operands) {
  binding out;
  int ranks[max_operands]{};
  for (int i = 0; i < operands.size(); ++i) ranks[i] = operands[i].shape->written();
  list<int, max_factors> parts, first;
  for (int f = 0; f < r.factors.size(); ++f) parts.push(1);
  const auto members = [](const pattern& p, int dim) {
    int n = 0;
    for (signed char g : p.group) n += g == dim;
    return n;
  };
  for (int i = 0; i < operands.size(); ++i) {
    const pattern& p = r.operands[i];
    for (int d = 0; d < ranks[i]; ++d) {
      const int f = p.factors[p.group.find(static_cast<signed char>(d))];
      const int have = operands[i].shape->count(d), want = members(p, d);
      if (want == 1 && have > 1 && parts[f] > 1 && parts[f] != have) {
        out.problem = {binding_problem::parts, i, -1, have, parts[f], r.factors[f].label, nullptr};
        return out;
      }
      if (want == 1 && have > parts[f]) parts[f] = have;
      if (want > 1 && have > 1 && have != want) {
        out.problem = {binding_problem::parts, i, -1, have, want, r.factors[f].label, nullptr};
        return out;
      }
    }
  }
  int total = 0;
  for (int n : parts) total += n;
  if (total > max_factors) {
    out.problem = {binding_problem::parts, -1, -1, total, max_factors, {}, nullptr};
    return out;
  }
  out.r = cut_factors(r, parts, first);
  for (int f = 0; f < out.r.factors.size(); ++f) out.sizes.push(0), out.labels.push({}), out.rule_labels.push({});
  for (int f = 0; f < r.factors.size(); ++f)
    if (parts[f] == 1 && !r.factors[f].label.view().starts_with("..")) out.rule_labels[first[f]] = r.factors[f].label.view();
  int sized_by[max_factors]{};
  for (int i = 0; i < operands.size(); ++i) {
    const pattern& p = r.operands[i];
    const pattern& cut = out.r.operands[i];
    const dimensions& shape = *operands[i].shape;
    const partition& held = *operands[i].held;
    partition q = partition::replicated(cut.factors.size());
    for (int a = 0; a < max_axes; ++a) q.partial[a] = held.partial[a];
    for (int k = 0; k < cut.factors.size(); ++k) out.given_part[i][k] = -1;
    for (int d = 0; d < ranks[i]; ++d) {
      const int have = shape.count(d), begin = cut.group.find(static_cast<signed char>(d));
      const int n = members(cut, d), from = p.group.find(static_cast<signed char>(d));
      int at = begin;
      for (int k = 0; k < have; ++k) {
        const int part = shape.first(d) + k;
        // A part of the operand is a part of a factor, a factor (perhaps cut), or the whole dimension, fused.
        const int spans = have == n ? 1 : have == 1 ? n : parts[p.factors[from + k]];
        q.dims[at] = held.dims[part];
        for (int j = at; j < at + spans; ++j) out.given_part[i][j] = part;
        const int f = cut.factors[at];
        if (spans == 1) {
          if (out.labels[f].empty()) out.labels[f] = shape.parts[part];
          if (out.sizes[f] == 0) out.sizes[f] = shape.sizes[part], sized_by[f] = i;
          else if (shape.sizes[part] != 0 && shape.sizes[part] != out.sizes[f])
            out.problem = {binding_problem::sizes, i, sized_by[f], shape.sizes[part], out.sizes[f], out.r.factors[f].label, nullptr};
        }
        at += spans;
      }
    }
    out.operands.push(q);
  }
  // Fused dimensions: their size is the product of their factors.
  for (int i = 0; i < operands.size() && !out.problem; ++i) {
    const pattern& cut = out.r.operands[i];
    for (int k = 0; k < cut.factors.size();) {
      const int part = out.given_part[i][k];
      int end = k, unknown = -1, unknowns = 0;
      long product = 1;
      for (; end < cut.factors.size() && out.given_part[i][end] == part; ++end) {
        const int f = cut.factors[end];
        if (out.sizes[f] == 0) unknown = f, ++unknowns;
        else product *= out.sizes[f];
      }
      const long size = operands[i].shape->sizes[part];
      if (end - k > 1 && size > 0) {
        if (unknowns == 1 && size % product == 0) out.sizes[unknown] = size / product;
        else if ((unknowns == 0 && size != product) || size % product != 0)
          out.problem = {binding_problem::sizes, i, -1, size, product, out.r.factors[cut.factors[k]].label, nullptr};
      }
      k = end;
    }
  }
  for (int f = 0; f < out.r.factors.size(); ++f)
    if (out.labels[f].empty()) out.labels[f] = out.rule_labels[f];
  return out;
}

/// Dimensions of a result, named as the operands name them; a name that is taken already, as the rule does. Where that is
/// taken too the name stands twice, and `readable` is false.
constexpr dimensions result_dimensions(const binding& b, int result) {
  dimensions d;
  const pattern& p = b.r.results[result];
  for (int i = 0; i < p.factors.size(); ++i) {
    const int f = p.factors[i];
    std::string_view label = b.labels[f];
    if (d.find(label) >= 0) label = b.rule_labels[f];
    d.readable = d.readable && !label.empty() && d.find(label) < 0;
    d.push(label, b.sizes[f], p.group[i]);
  }
  return d;
}

}  // namespace cfp
