// Cutting: where a tensor writes one factor as several dimensions, the factor becomes its parts in the whole rule.
#pragma once

#include <cfp/core/rule.hpp>

namespace cfp::inline v0_1 {

/// Cuts every factor into this many parts, major first ("out" becomes "out.0", "out.1"); compound dimensions stay.
/// `first[f]` is the first part of factor f.
constexpr rule cut_factors(const rule& r, const list<int, max_factors>& parts, list<int, max_factors>& first) {
  rule out;
  out.combine = r.combine;
  first = {};
  for (int f = 0; f < r.factors.size(); ++f) {
    first.push(out.factors.size());
    for (int k = 0; k < parts[f]; ++k) {
      factor added = r.factors[f];
      if (parts[f] > 1) {
        const char suffix[3] = {'.', static_cast<char>('0' + k), '\0'};
        while (added.label.count > name::capacity - 2) added.label.characters[--added.label.count] = '\0';
        added.label += suffix;
      }
      if (k > 0) added.part_of = static_cast<signed char>(r.coordinate_of(f));
      out.factors.push(added);
    }
  }
  const auto expand = [&](const pattern& p) {
    pattern q;
    for (int i = 0; i < p.factors.size(); ++i)
      for (int k = 0; k < parts[p.factors[i]]; ++k) {
        q.factors.push(static_cast<signed char>(first[p.factors[i]] + k));
        q.group.push(p.group[i]);
      }
    return q;
  };
  for (factor& f : out.factors)
    if (f.window >= 0) f.window = static_cast<signed char>(first[f.window]);
  for (const pattern& p : r.operands) out.operands.push(expand(p));
  for (const pattern& p : r.results) out.results.push(expand(p));
  for (signed char c : r.coordinates) out.coordinates.push(static_cast<signed char>(first[c]));
  return out;
}

/// Drops factors of size one from compound dimensions: they are no part of the tensor that a split could be of.
constexpr void drop_ones(const factor_sizes& sizes, pattern& p) {
  pattern out;
  for (int i = 0; i < p.factors.size(); ++i) {
    int members = 0, ones = 0;
    for (int k = 0; k < p.factors.size(); ++k)
      if (p.group[k] == p.group[i]) ++members, ones += sizes[p.factors[k]] == 1;
    const bool last_of_ones = ones == members && (i + 1 == p.factors.size() || p.group[i + 1] != p.group[i]);
    if (members > 1 && sizes[p.factors[i]] == 1 && !last_of_ones) continue;
    out.factors.push(p.factors[i]);
    out.group.push(p.group[i]);
  }
  p = out;
}

}  // namespace cfp
