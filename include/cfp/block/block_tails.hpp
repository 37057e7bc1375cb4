// The tails of blocks: what nothing that decides a block follows.
#pragma once

#include <cfp/block/growing_blocks.hpp>

namespace cfp::inline v0_1::detail {

// Of operations that no anchor of their block follows, the pieces in which one operation alone reads what another
// makes, named by one of them; -1: part of the body.
inline std::vector<int> block_tails(const graph& g, const wiring& wires, const growing_blocks& grown) {
  const auto n = g.operations.size();
  std::vector<bool> leads(n);
  for (std::size_t b = 0; b < grown.size(); ++b)
    for (int a : grown.anchors(static_cast<int>(b))) leads[static_cast<std::size_t>(a)] = true;
  const auto readers = consumers(g);
  std::vector<int> joined(n), order;  // itself, where it names its piece; else one nearer to that which does, or -1
  for (int i : topological_order(wires))
    if (g.at(i).when == phase::forward && grown.of(i) >= 0) order.push_back(i);
  for (auto at = order.rbegin(); at != order.rend(); ++at)
    for (int v : g.at(*at).results)
      for (int c : readers[static_cast<std::size_t>(v)])
        if (grown.of(c) == grown.of(*at) && leads[static_cast<std::size_t>(c)])
          leads[static_cast<std::size_t>(*at)] = true;
  for (int i : order) joined[static_cast<std::size_t>(i)] = leads[static_cast<std::size_t>(i)] ? -1 : i;
  const auto piece = [&](int i) {
    for (int to; i >= 0 && (to = joined[static_cast<std::size_t>(i)]) != i; i = to)
      if (to >= 0) joined[static_cast<std::size_t>(i)] = joined[static_cast<std::size_t>(to)];
    return i;
  };
  for (bool again = true; again;) {
    again = false;
    for (int i : order)
      for (int v : g.at(i).results) {
        std::set<int> ways;
        for (int c : readers[static_cast<std::size_t>(v)])
          if (g.at(c).when == phase::forward) ways.insert(grown.of(c) == grown.of(i) ? piece(c) : -2 - c);
        const int mine = piece(i);
        if (ways.size() != 1 || *ways.begin() < 0 || *ways.begin() == mine) continue;
        joined[static_cast<std::size_t>(*ways.begin())] = mine;
        again = true;
      }
  }
  std::vector<int> out(n);
  for (int i : order) out[static_cast<std::size_t>(i)] = piece(i);
  return out;
}

}  // namespace cfp::detail
