// Boost.Graph's view of an operator graph: vertices are operations, edges run from producers to consumers.
#pragma once

#include <cfp/model/graph.hpp>

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/topological_sort.hpp>

#include <iterator>
#include <vector>

namespace cfp::inline v0_1 {

using wiring = boost::adjacency_list<boost::vecS, boost::vecS, boost::bidirectionalS>;

/// The operations for which `keep(operation)` holds; others become isolated vertices.
template <class Keep>
wiring wire(const graph& g, Keep&& keep) {
  wiring w(g.operations.size());
  for (int i = 0; i < g.size(); ++i) {
    if (!keep(i)) continue;
    for (int v : g.at(i).operands)
      if (const int p = g[v].producer; p >= 0 && keep(p))
        boost::add_edge(static_cast<std::size_t>(p), static_cast<std::size_t>(i), w);
  }
  return w;
}

/// Producers before consumers.
inline std::vector<int> topological_order(const wiring& w) {
  std::vector<std::size_t> reversed;
  boost::topological_sort(w, std::back_inserter(reversed));
  return {reversed.rbegin(), reversed.rend()};
}

}  // namespace cfp
