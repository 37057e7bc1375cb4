// In which partitions a tensor with several readers may be materialised.
#pragma once

#include <cfp/block/known_choices.hpp>
#include <cfp/core/convert.hpp>

#include <cstddef>
#include <string>
#include <vector>

namespace cfp::inline v0_1::detail {

/// One of the partitions in which it is wanted, or two of which neither is a local piece of the other.
inline choice_set forms_of(const value& x, const std::vector<partition>& wanted, const mesh_shape& mesh) {
  choice_set out;
  const auto local = [&](const partition& a, const partition& b) {
    const conversion c = convert(a, b, x.shape, 4, mesh);
    return c.possible && c.collectives() == 0;
  };
  std::vector<std::string> names;
  for (const partition& p : wanted) names.push_back(describe(p, x, mesh));
  for (std::size_t a = 0; a < wanted.size(); ++a) {
    out.forms.push_back({{wanted[a]}, 1});
    out.names.push_back(names[a]);
    for (std::size_t b = a + 1; b < wanted.size(); ++b) {
      if (local(wanted[a], wanted[b]) || local(wanted[b], wanted[a])) continue;
      out.forms.push_back({{wanted[a], wanted[b]}, 2});
      out.names.push_back(names[a] + " and " + names[b]);
    }
  }
  return out;
}

}  // namespace cfp::detail
