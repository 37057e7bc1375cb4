// Reads a rule from its text. One line says everything: "... in, in out -> ... out",
// "b h q k -> b h q; max k; index q k", "v m, ... -> ... m; onehot v", "b s (three h d) -> three b h s d".
//
//   rule    = side "->" side { ";" mark }
//   side    = [ tensor { "," tensor } ]          tensor = { factor | "(" factor { factor } ")" | "..." }
//   mark    = ("whole" | "onehot" | "index" | "max" | "min") factor { factor }
//
// "..." stands for as many dimensions as the tensor bound to it has left; it is expanded by `parse`.
#pragma once

#include <cfp/core/rule.hpp>

namespace cfp {

/// What is wrong with a rule, and where (1-based column); thrown, so in a constant expression it does not compile.
struct rule_error {
  const char* what;
  int column;
};

namespace detail {

struct rule_reader {
  std::string_view source;
  int at = 0;
  const int* ranks = nullptr;  // dimensions of each bound operand (refined dimensions count one), or null
  rule out{};
  int ellipsis = -1;           // how many dimensions "..." stands for, once known

  constexpr bool more() const { return at < static_cast<int>(source.size()); }
  constexpr char peek() const { return more() ? source[static_cast<std::size_t>(at)] : '\0'; }
  constexpr void blanks() {
    while (peek() == ' ') ++at;
  }
  constexpr bool take(std::string_view word) {
    blanks();
    if (source.substr(static_cast<std::size_t>(at)).substr(0, word.size()) != word) return false;
    at += static_cast<int>(word.size());
    return true;
  }
  [[noreturn]] void fail(const char* what) const { throw rule_error{what, at + 1}; }

  static constexpr bool letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c >= '0' && c <= '9');
  }
  constexpr std::string_view word() {
    blanks();
    const int from = at;
    while (letter(peek())) ++at;
    if (at == from) fail("expected the name of a factor");
    return source.substr(static_cast<std::size_t>(from), static_cast<std::size_t>(at - from));
  }
  constexpr signed char factor_id(std::string_view label) {
    int f = out.find(label);
    if (f < 0) {
      f = out.factors.size();
      out.factors.push({name(label)});
    }
    return static_cast<signed char>(f);
  }
  constexpr void add(pattern& p, std::string_view label, int group) {
    const signed char f = factor_id(label);
    if (p.factors.contains(f)) fail("a factor stands twice in one tensor");
    p.factors.push(f);
    p.group.push(static_cast<signed char>(group));
  }

  constexpr bool tensor_ends() {
    blanks();
    return !more() || peek() == ',' || peek() == ';' || source.substr(static_cast<std::size_t>(at)).starts_with("->");
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
      if (letter(c) && !in_word && !inside) ++n;
      in_word = letter(c);
    }
    return n;
  }

  constexpr pattern tensor(int bound_rank) {
    pattern p;
    int group = 0;
    const int written = written_dims();
    while (!tensor_ends()) {
      if (take("...")) {
        int dims = bound_rank >= 0 ? bound_rank - written : ellipsis;
        if (dims < 0 && ranks) fail("too few dimensions for this tensor");
        if (ellipsis >= 0 && ellipsis != dims) fail("'...' stands for different numbers of dimensions");
        if (dims < 0) dims = 0;
        ellipsis = dims;
        for (int i = 0; i < dims; ++i) {
          const char label[4] = {'.', '.', static_cast<char>('0' + i), '\0'};
          add(p, label, group++);
        }
      } else if (take("(")) {
        while (!take(")")) add(p, word(), group);
        ++group;
      } else {
        add(p, word(), group++);
      }
    }
    return p;
  }

  constexpr void mark() {
    const std::string_view kind = word();
    if (tensor_ends()) fail("a mark names at least one factor");
    while (blanks(), more() && peek() != ';') {
      const int f = out.find(word());
      if (f < 0) fail("a mark names a factor the rule does not have");
      if (kind == "whole") out.factors[f].whole = true;
      else if (kind == "onehot") out.factors[f].one_hot = true;
      else if (kind == "index") out.coordinates.push(static_cast<signed char>(f));
      else if (kind == "max") out.combine = reduction::max;
      else if (kind == "min") out.combine = reduction::min;
      else fail("unknown mark; known are whole, onehot, index, max, min");
    }
  }

  constexpr rule read() {
    int operand = 0;
    do {
      blanks();
      if (operand == 0 && source.substr(static_cast<std::size_t>(at)).starts_with("->")) break;
      out.operands.push(tensor(ranks ? ranks[operand] : -1));
      ++operand;
    } while (take(","));
    if (!take("->")) fail("expected '->' or ','");
    do out.results.push(tensor(-1));
    while (take(","));
    while (take(";")) mark();
    blanks();
    if (more()) fail("unexpected text after the rule");
    for (const pattern& r : out.results)
      for (signed char f : r.factors) {
        bool known = out.factors[f].whole || out.factors[f].one_hot;
        for (const pattern& o : out.operands) known = known || o.dim_of(f) >= 0;
        if (!known) fail("a result has a factor that no operand has");
      }
    return out;
  }
};

}  // namespace detail

/// Parses a rule bound to nothing: "..." stands for no dimension.
constexpr rule parse(std::string_view source) {
  return detail::rule_reader{source}.read();
}

/// Parses a rule in which "..." stands for this many dimensions.
constexpr rule parse(std::string_view source, int ellipsis) {
  detail::rule_reader r{source};
  r.ellipsis = ellipsis;
  return r.read();
}

/// Parses a rule bound to operands with these numbers of dimensions; expands "...".
constexpr rule parse(std::string_view source, const int* ranks) {
  detail::rule_reader r{source};
  r.ranks = ranks;
  return r.read();
}

}  // namespace cfp
