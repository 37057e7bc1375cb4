// What is wrong with a text, and where.
#pragma once

namespace cfp::inline v0_1 {

/// A text that cannot be read, and the column (1-based) where.
struct text_error {
  const char* what = nullptr;
  int column = 0;
  constexpr explicit operator bool() const { return what != nullptr; }
};

}  // namespace cfp
