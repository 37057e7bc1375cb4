// What is held of forward until backward has read it.
#pragma once

#include <vector>

namespace cfp::inline v0_1 {

/// Of a training graph whose operators some target computes.
struct saved_values {
  /// Per value that forward computes: operations of backward that read it from memory.
  std::vector<std::vector<int>> readers;
  /// Per operation: operators that one kernel computes together, and whose insides backward computes again itself, have
  /// one number; all others their own.
  std::vector<int> unit;
};

}  // namespace cfp
