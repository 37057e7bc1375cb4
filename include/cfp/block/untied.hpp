// Every operator a part of its own: the search space that blocks are measured against.
#pragma once

#include <cfp/block/parallel_blocks.hpp>

namespace cfp::inline v0_1 {

/// The parts of a structure taken apart. Gradients go with their operator; sums and updates with the operator that
/// alone uses the tensor, else they are decisions of their own.
inline block_structure untied(const graph& g) {
  block_structure out;
  out.part_of.assign(g.operations.size(), -1);
  const auto users = consumers(g);
  for (int i = 0; i < g.size(); ++i) {
    const operation& o = g.at(i);
    int& mine = out.part_of[static_cast<std::size_t>(i)];
    if (o.when == phase::forward) {
      mine = static_cast<int>(out.parts.size());
      part p;
      p.block = mine;
      p.forward = {i};
      if (!detail::own_dimensions(g, i).empty()) p.anchors = {i};
      out.parts.push_back(std::move(p));
      block b;
      b.body = mine;
      b.label = std::string(g[o.results[0]].label.view());
      out.blocks.push_back(std::move(b));
    } else if (o.origin >= 0) {
      mine = out.part_of[static_cast<std::size_t>(o.origin)];
    } else if (o.hub >= 0) {
      std::set<int> parts;
      for (int c : users[static_cast<std::size_t>(o.hub)])
        if (g.at(c).when == phase::forward) parts.insert(out.part_of[static_cast<std::size_t>(c)]);
      if (parts.size() == 1) mine = *parts.begin();
    }
    if (mine >= 0) out.parts[static_cast<std::size_t>(mine)].operations.push_back(i);
  }
  return out;
}

}  // namespace cfp
