// A model cut into stages of as many layers each.
#pragma once

#include <cfp/block/segments.hpp>
#include <cfp/core/bad_input.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

namespace cfp::inline v0_1 {

/// Of each stage the first segment that is not its: the first has what is before the layers, the last what is behind.
/// Layers are the segments of which there are most, in blocks. Throws bad_input where there are fewer than stages.
inline std::vector<int> equal_ends(const segmentation& found, int stages) {
  const std::vector<segment>& all = found.segments;
  const auto like = [&](const segment& a) {
    return std::count_if(all.begin(), all.end(), [&](const segment& b) { return a.kind == b.kind; });
  };
  const segment& layer = *std::max_element(all.begin(), all.end(), [&](const segment& a, const segment& b) {
    return like(a) * a.count < like(b) * b.count;
  });
  std::vector<int> layers, out;  // where each begins
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i].kind == layer.kind) layers.push_back(static_cast<int>(i));
  if (static_cast<int>(layers.size()) < stages)
    throw bad_input("a model of " + std::to_string(layers.size()) + " equal layers has no " + std::to_string(stages) +
                    " stages of them; take fewer, or more layers");
  for (int s = 1; s < stages; ++s)
    out.push_back(layers[layers.size() * static_cast<std::size_t>(s) / static_cast<std::size_t>(stages)]);
  out.push_back(static_cast<int>(all.size()));
  return out;
}

}  // namespace cfp
