// Which inputs of a model are cut from a text, and which are always the same.
#pragma once

#include <cfp/model/batch.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>

namespace cfp::inline v0_1::families {

struct text_layout {
  std::map<std::string, long> reads{{"tokens", 0}, {"targets", 1}};  ///< this far behind the place of a row
  batch fixed{};                                                     ///< the same in every pass
  bool positions = true;    ///< whether the model asks for the places of a row, 0, 1, ..., by the name "positions"
  long first_position = 0;  ///< of these
  /// Of 100 tokens 15 are hidden behind this one, and targets are these alone; below 0: none is.
  std::int32_t hidden_as = -1;
  /// Images in the place of rows of tokens, by the name "patches": so many rows of so many numbers, all 0 in the first.
  long image_rows = 0, image_numbers = 0;

  /// Bytes of the text that are one row or image, if rows are as long as this.
  long length(long sequence) const { return image_rows > 0 ? (image_rows - 1) * image_numbers : sequence; }
  long reach() const {
    long most = 0;
    for (const auto& [label, shift] : reads) most = std::max(most, shift);
    return most;
  }
};

}  // namespace cfp::families
