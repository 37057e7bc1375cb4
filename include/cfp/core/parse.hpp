// Reads a rule from its text. One line says everything: "... in, in out -> ... out",
// "b h q k -> b h q; max k; index q k", "v m, ... -> ... m; onehot v", "b s (three h d) -> three b h s d".
//
// "..." stands for as many dimensions as the tensor bound to it has left; it is expanded by `parse`. What a rule may
// say in all stands in rule_reader.hpp.
#pragma once

#include <cfp/core/rule_reader.hpp>
#include <cfp/core/shape_error.hpp>

namespace cfp::inline v0_1 {

/// How many dimensions a rule says its operands have, and which of them have "..." besides.
struct rule_outline {
  list<signed char, max_operands> written;
  list<bool, max_operands> dots;
  text_error problem;

  /// What "..." stands for, given the operands' numbers of dimensions: what the first that has it leaves.
  constexpr int ellipsis(const list<int, max_operands>& ranks) const {
    for (int i = 0; i < ranks.size() && i < dots.size(); ++i)
      if (dots[i]) return ranks[i] > written[i] ? ranks[i] - written[i] : 0;
    return 0;
  }
};

namespace detail {

constexpr rule or_throw(const parsed_rule& p, std::string_view source) {
  if (!p.problem) return p.value;
  sentence why;
  say_error(why, p.problem, source);
  throw shape_error(why);
}

}  // namespace detail

/// Reads a rule bound to nothing ("..." stands for no dimension) or says what is wrong with it.
constexpr parsed_rule read_rule(std::string_view source) { return detail::rule_reader{source}.read(); }

/// Reads a rule bound to operands with these numbers of dimensions.
constexpr parsed_rule read_rule(std::string_view source, const int* ranks) {
  detail::rule_reader r{source};
  r.ranks = ranks;
  return r.read();
}

/// What a rule says before it is bound.
constexpr rule_outline outline(std::string_view source) {
  rule_outline out;
  const parsed_rule r = read_rule(source);
  out.problem = r.problem;
  int at = 0;
  const int arrow = position(source, "->");
  for (const pattern& p : r.value.operands) {
    const int comma = position(source, ",", at);
    const int end = comma < 0 || comma > arrow ? arrow : comma;
    const std::string_view operand = source.substr(static_cast<std::size_t>(at), static_cast<std::size_t>(end - at));
    out.written.push(static_cast<signed char>(p.group.empty() ? 0 : p.group.back() + 1));
    out.dots.push(position(operand, "...") >= 0);
    at = end + 1;
  }
  return out;
}

/// The same, throwing a shape_error; in a constant expression it does not compile.
constexpr rule parse(std::string_view source) { return detail::or_throw(read_rule(source), source); }
constexpr rule parse(std::string_view source, const int* ranks) {
  return detail::or_throw(read_rule(source, ranks), source);
}

/// Parses a rule in which "..." stands for this many dimensions.
constexpr rule parse(std::string_view source, int ellipsis) {
  detail::rule_reader r{source};
  r.ellipsis = ellipsis;
  return detail::or_throw(r.read(), source);
}

}  // namespace cfp
