// Reads the text of a rule, factor by factor, up to the first thing that is no rule.
//
//   rule    = side "->" side { ";" mark }
//   side    = [ tensor { "," tensor } ]          tensor = { factor | "(" factor { factor } ")" | "..." }
//   mark    = ("whole" | "onehot" | "index" | "max" | "min" | "scan") factor { factor } | "halo" factor window
#pragma once

#include <cfp/core/rule.hpp>
#include <cfp/core/text_error.hpp>

namespace cfp::inline v0_1 {

/// A rule, or why there is none.
struct parsed_rule {
  rule value;
  text_error problem;
};

namespace detail {

struct rule_reader {
  std::string_view source;
  int at = 0;
  const int* ranks = nullptr;  // dimensions of each bound operand (refined dimensions count one), or null
  rule out{};
  int ellipsis = -1;     // how many dimensions "..." stands for, once known
  text_error problem{};  // the first one; after it nothing is left to read
  int result_columns[max_results]{};
  bool extreme[max_factors]{};

  constexpr bool more() const { return at < static_cast<int>(source.size()); }
  constexpr char peek() const { return more() ? source[static_cast<std::size_t>(at)] : '\0'; }
  constexpr void blanks() {
    while (peek() == ' ') ++at;
  }
  constexpr bool starts(std::string_view word) const {
    return more() && source.substr(static_cast<std::size_t>(at)).substr(0, word.size()) == word;
  }
  constexpr bool take(std::string_view word) {
    blanks();
    if (!starts(word)) return false;
    at += static_cast<int>(word.size());
    return true;
  }
  constexpr void fail(const char* what, int column = -1, const char* counted = nullptr, int number = 0) {
    if (!problem) problem = {what, (column < 0 ? at : column) + 1, counted, number};
    at = static_cast<int>(source.size());
  }

  constexpr std::string_view word() {
    blanks();
    const int from = at;
    while (is_name_character(peek())) ++at;
    if (at == from) return fail("expected the name of a factor"), std::string_view{};
    if (at - from > name::capacity)
      return fail("a name has at most 23 characters", from, "has", at - from), std::string_view{};
    return source.substr(static_cast<std::size_t>(from), static_cast<std::size_t>(at - from));
  }
  constexpr void add(pattern& p, std::string_view label, int group, int column) {
    if (problem) return;
    int f = out.find(label);
    if (f < 0) {
      f = out.factors.size();
      if (f == max_factors) return fail("a rule has at most 16 factors", column, "is number", f + 1);
      out.factors.push({name(label)});
    }
    if (p.dim_of(f) >= 0) return fail("a factor stands twice in one tensor", column);
    if (p.factors.size() == max_dims) return fail("a tensor has at most 8 dimensions", column);
    p.factors.push(static_cast<signed char>(f));
    p.group.push(static_cast<signed char>(group));
  }
  constexpr void add_word(pattern& p, int group) {
    blanks();
    const int column = at;
    add(p, word(), group, column);
  }

  constexpr bool tensor_ends() {
    blanks();
    return !more() || peek() == ',' || peek() == ';' || starts("->");
  }

  // Dimensions written in the tensor that starts here, not counting "...": needed to know what "..." stands for.
  constexpr int written_dims() const {
    int n = 0;
    bool inside = false, in_word = false;
    for (int i = at; i < static_cast<int>(source.size()); ++i) {
      const char c = source[static_cast<std::size_t>(i)];
      if (c == ',' || c == ';' || c == '-') break;
      if (c == '(') ++n, inside = true;
      if (c == ')') inside = false;
      if (is_name_character(c) && !in_word && !inside) ++n;
      in_word = is_name_character(c);
    }
    return n;
  }

  constexpr pattern tensor(int bound_rank) {
    pattern p;
    int group = 0;
    const int written = written_dims();
    while (!tensor_ends()) {
      const int column = at;
      if (take("...")) {
        int dims = bound_rank >= 0 ? bound_rank - written : ellipsis;
        if (dims < 0 && ranks) fail("too few dimensions for this tensor", column);
        if (ellipsis >= 0 && ellipsis != dims) fail("'...' stands for different numbers of dimensions", column);
        if (dims < 0) dims = 0;
        if (!problem) ellipsis = dims;
        for (int i = 0; i < dims && !problem; ++i) {
          const char label[4] = {'.', '.', static_cast<char>('0' + i), '\0'};
          add(p, label, group++, column);
        }
      } else if (take("(")) {
        if (take(")")) fail("'()' holds no factor", column);
        while (!problem && !take(")")) {
          blanks();
          if (!is_name_character(peek())) fail("expected the name of a factor or ')'");
          else add_word(p, group);
        }
        ++group;
      } else {
        add_word(p, group++);
      }
    }
    return p;
  }

  constexpr int known_factor() {
    blanks();
    const int column = at;
    const std::string_view label = word();
    const int f = problem ? -1 : out.find(label);
    if (!problem && f < 0) fail("a mark names a factor the rule does not have", column);
    return f;
  }

  constexpr void mark() {
    blanks();
    const int column = at;
    const std::string_view kind = word();
    const bool known = kind == "whole" || kind == "onehot" || kind == "index" || kind == "max" || kind == "min" ||
                       kind == "scan" || kind == "halo";
    if (!known) fail("unknown mark; known are whole, onehot, index, max, min, scan, halo", column);
    if (!problem && tensor_ends()) fail("a mark names at least one factor");
    if (kind == "halo") {
      const int f = known_factor();
      const int window = known_factor();
      if (!problem && f == window) fail("halo names a factor and another one that is its window", column);
      if (!problem) out.factors[f].window = static_cast<signed char>(window);
      if (!problem && !tensor_ends()) fail("halo names one factor and its window; write another '; halo' for more");
      return;
    }
    while (blanks(), more() && peek() != ';') {
      const int marked = at, f = known_factor();
      if (f < 0) return;
      if (kind == "whole") out.factors[f].whole = true;
      if (kind == "onehot") out.factors[f].one_hot = true;
      if (kind == "scan") out.factors[f].scan = true;
      if (kind == "index" && out.coordinates.size() == 4)
        return fail("at most 4 factors can be marked index", marked, "is number", 5);
      if (kind == "index") out.coordinates.push(static_cast<signed char>(f));
      if (kind == "max" || kind == "min") {
        const reduction wanted = kind == "max" ? reduction::max : reduction::min;
        if (!out.is_reduction(f))
          return fail("max and min name factors that are reduced over: no result has them", column);
        if (out.combine != reduction::sum && out.combine != wanted)
          return fail("one rule reduces by one of sum, max and min", column);
        out.combine = wanted;
        extreme[f] = true;
      }
    }
  }

  constexpr parsed_rule read() {
    do {
      blanks();
      if (out.operands.size() == max_operands) fail("an operator has at most 8 operands");
      if (problem) break;
      const int column = at;
      const pattern p = tensor(ranks ? ranks[out.operands.size()] : -1);
      if (problem) break;
      out.operands.push(p);
      if (peek() == ';') fail("expected '->' before the marks", column);
    } while (take(","));
    if (!take("->")) fail("expected '->' or ','");
    do {
      if (problem) break;
      blanks();
      const int column = at;
      if (out.results.size() == max_results) fail("an operator has at most 4 results");
      const pattern p = tensor(-1);
      if (problem) break;
      out.results.push(p);
      result_columns[out.results.size() - 1] = column;
    } while (take(","));
    while (take(";")) mark();
    blanks();
    if (more()) fail("unexpected text after the rule");
    for (int f = 0; f < out.factors.size() && !problem && out.combine != reduction::sum; ++f)
      if (out.is_reduction(f) && !extreme[f]) fail("a rule with max or min must name every factor it reduces over", 0);
    for (int r = 0; r < out.results.size() && !problem; ++r)
      for (signed char f : out.results[r].factors) {
        bool known = out.factors[f].whole || out.factors[f].one_hot;
        for (const pattern& o : out.operands) known = known || o.dim_of(f) >= 0;
        if (!known) fail("a result has a factor that no operand has", result_columns[r]);
      }
    return {out, problem};
  }
};

}  // namespace detail

}  // namespace cfp
