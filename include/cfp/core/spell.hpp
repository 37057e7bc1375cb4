// Writes a rule as its text. What `parse` reads back is the same rule, but for the names of factors: those that are no
// words of the language ("..0", "out.1") become words.
#pragma once

#include <cfp/core/rule.hpp>

namespace cfp::inline v0_1 {

using rule_text = text<1023>;

namespace detail {

// Names of factors as words: letters, digits and '_', all different.
constexpr list<name, max_factors> spelled_factors(const rule& r) {
  list<name, max_factors> out;
  for (const factor& f : r.factors) {
    name word;
    const std::string_view label = f.label.view();
    if (label.starts_with("..")) word += "dim";
    for (char c : label)
      if (c != '.') word.push(c);
      else if (!label.starts_with("..")) word.push('_');
    while (out.contains(word)) word.push('_');
    out.push(word);
  }
  return out;
}

constexpr void spell(rule_text& out, const list<name, max_factors>& words, const pattern& p) {
  for (int i = 0; i < p.factors.size(); ++i) {
    const bool opens =
        i + 1 < p.factors.size() && p.group[i + 1] == p.group[i] && (i == 0 || p.group[i - 1] != p.group[i]);
    const bool closes =
        i > 0 && p.group[i - 1] == p.group[i] && (i + 1 == p.factors.size() || p.group[i + 1] != p.group[i]);
    say(out, i ? " " : "", opens ? "(" : "", words[p.factors[i]].view(), closes ? ")" : "");
  }
}

}  // namespace detail

constexpr rule_text spell(const rule& r) {
  rule_text out;
  const list<name, max_factors> words = detail::spelled_factors(r);
  for (int i = 0; i < r.operands.size(); ++i) {
    if (i) out += ", ";
    detail::spell(out, words, r.operands[i]);
  }
  out += r.operands.empty() || r.operands.back().factors.empty() ? "->" : " ->";
  for (int i = 0; i < r.results.size(); ++i) {
    say(out, i ? "," : "", r.results[i].factors.empty() ? "" : " ");
    detail::spell(out, words, r.results[i]);
  }
  const auto mark = [&](std::string_view kind, auto has) {
    bool any = false;
    for (int f = 0; f < r.factors.size(); ++f) {
      if (!has(f)) continue;
      say(out, any ? " " : "; ", any ? std::string_view{} : kind, any ? "" : " ", words[f].view());
      any = true;
    }
  };
  mark("whole", [&](int f) { return r.factors[f].whole; });
  mark("onehot", [&](int f) { return r.factors[f].one_hot; });
  mark("scan", [&](int f) { return r.factors[f].scan; });
  for (int f = 0; f < r.factors.size(); ++f)
    if (r.factors[f].window >= 0) say(out, "; halo ", words[f].view(), " ", words[r.factors[f].window].view());
  if (r.combine != reduction::sum)
    mark(r.combine == reduction::max ? "max" : "min", [&](int f) { return r.is_reduction(f); });
  for (int i = 0; i < r.coordinates.size(); ++i) say(out, i ? " " : "; index ", words[r.coordinates[i]].view());
  return out;
}

}  // namespace cfp
