// Where in a user's program something was called, for what is said of it.
#pragma once

#include <cfp/core/text.hpp>

#include <cstddef>
#include <string_view>

namespace cfp::inline v0_1 {

/// Where something was called, as the compiler says it: a default argument that is the caller's place.
struct source_place {
  const char* file = nullptr;
  int line = 0;
};

/// "main.cpp:41: ", of a long path its end.
constexpr void say_place(sentence& s, const source_place& at) {
  if (at.file == nullptr) return;
  std::string_view file(at.file);
  if (file.size() > 100) file.remove_prefix(file.size() - 100);
  say(s, file, ":", static_cast<long>(at.line), ": ");
}

/// Pieces of a name, one behind the other. Throws limit_reached with all of it and the place where it is too long.
template <class Text, class... Piece>
constexpr Text named_at(const source_place& at, const Piece&... piece) {
  const std::size_t length = (std::size_t{0} + ... + std::string_view(piece).size());
  if (length > static_cast<std::size_t>(Text::capacity)) {
    sentence where, all;
    say_place(where, at);
    say(all, std::string_view(piece)...);
    throw limit_reached(all, length, Text::capacity, where);
  }
  Text out;
  (static_cast<void>(out += std::string_view(piece)), ...);
  return out;
}

}  // namespace cfp
