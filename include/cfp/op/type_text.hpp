// An operator's type as text: what it is called unless it says otherwise, and what tells two of one template apart.
#pragma once

#include <cfp/core/text.hpp>

#include <cstddef>
#include <string_view>

namespace cfp::inline v0_1::detail {

/// Where one of the wanted characters stands first from `at` on, outside of brackets and quotes; else the end.
constexpr std::size_t outside(std::string_view s, std::size_t at, std::string_view wanted) {
  const auto one_of = [](std::string_view all, char c) { return position(all, {&c, 1}) >= 0; };
  int depth = 0;
  char quote = 0;
  for (; at < s.size(); ++at) {
    const char c = s[at];
    if (quote != 0) {
      if (c == '\\') ++at;
      else if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (depth == 0 && one_of(wanted, c)) {
      return at;
    } else {
      depth += one_of("<([{", c) - one_of(">)]}", c);
    }
  }
  return s.size();
}

/// "users::swiglu_t", as the compiler writes it.
template <class Op>
constexpr std::string_view compiler_text() {
  std::string_view s = __PRETTY_FUNCTION__;  // "... [with Op = users::swiglu_t; ...]"
  s = s.substr(static_cast<std::size_t>(position(s, "Op = ")) + 5);
  return s.substr(0, outside(s, 0, ";]"));
}

/// "swiglu_t", "scaled_t<2>": without the namespaces it is in.
constexpr std::string_view without_namespaces(std::string_view s) {
  std::size_t begin = 0;
  const std::size_t arguments = outside(s, 0, "<");
  for (std::size_t at = outside(s, 0, ":"); at < arguments; at = outside(s, at + 1, ":")) begin = at + 1;
  return s.substr(begin);
}

/// "swiglu", "scaled": that without template arguments, and what it is a member of.
constexpr std::string_view label_of_type(std::string_view s) {
  for (std::size_t at = outside(s, 0, ":"); at < s.size(); at = outside(s, 0, ":")) s = s.substr(at + 1);
  s = s.substr(0, outside(s, 0, "<"));
  if (s.ends_with("_t")) s.remove_suffix(2);
  return s;
}

}  // namespace cfp::detail
