// Segments that a stage can begin with.
#pragma once

#include <cfp/block/repeats.hpp>

#include <algorithm>
#include <cstddef>
#include <vector>

namespace cfp::inline v0_1 {

/// Those that forward operations belong to; one without any (they run along others) is part of that before it.
struct stage_segments {
  segmentation found;
  std::vector<int> first;                   ///< operation of each
  std::vector<int> of_operation, of_value;  ///< the segment of each, or -1

  stage_segments(const graph& g, const segmentation& all, const repeats& r) {
    std::vector<int> number;
    for (std::size_t i = 0; i < r.operations.size(); ++i) {
      const std::vector<int>& own = r.operations[i];
      if (!own.empty() && g.at(own.front()).when == phase::forward)
        first.push_back(own.front()), found.segments.push_back(all.segments[i]);
      number.push_back(std::max(0, count() - 1));
    }
    const auto renumbered = [&](std::vector<int> of) {
      for (int& segment : of)
        if (segment >= 0) segment = number[static_cast<std::size_t>(segment)];
      return of;
    };
    of_operation = renumbered(r.of_operation), of_value = renumbered(r.of_value);
  }
  int count() const { return static_cast<int>(first.size()); }
};

}  // namespace cfp
