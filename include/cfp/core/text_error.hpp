// What is wrong with a text, and where.
#pragma once

#include <cfp/core/text.hpp>

namespace cfp::inline v0_1 {

/// A text that cannot be read, and the column (1-based) where; what is more than a bound is `counted`: "has" 24.
struct text_error {
  const char* what = nullptr;
  int column = 0;
  const char* counted = nullptr;
  int number = 0;
  constexpr explicit operator bool() const { return what != nullptr; }
};

/// "expected ')', column 7 of "b (s d"", and of what is counted "a name has at most 23 characters, 'abc...' has 24,
/// column 1 of "abc... d"".
constexpr void say_error(sentence& s, const text_error& e, std::string_view of) {
  say(s, e.what);
  if (e.counted != nullptr) {
    const std::string_view rest = of.substr(static_cast<std::size_t>(e.column - 1));
    std::size_t end = 0;
    while (end < rest.size() && is_name_character(rest[end])) ++end;
    say(s, ", '", rest.substr(0, end), "' ", e.counted, " ", static_cast<long>(e.number));
  }
  say(s, ", column ", static_cast<long>(e.column), " of \"", of, "\"");
}

}  // namespace cfp
