// Which inputs of a model are cut from a text, and which are always the same.
#pragma once

#include <cfp/model/batch.hpp>

#include <algorithm>
#include <map>
#include <string>

namespace cfp::inline v0_1::families {

struct text_layout {
  std::map<std::string, long> reads{{"tokens", 0}, {"targets", 1}};  ///< this far behind the place of a row
  batch fixed{};                                                     ///< the same in every pass
  bool positions = true;    ///< whether the model asks for the places of a row, 0, 1, ..., by the name "positions"
  long first_position = 0;  ///< of these

  long reach() const {
    long most = 0;
    for (const auto& [label, shift] : reads) most = std::max(most, shift);
    return most;
  }
};

}  // namespace cfp::families
