// Random cost graphs: small ones full of ties for tests, layers as transformers have them for tests and the bench.
#pragma once

#include <cfp/solve/cost_graph.hpp>

#include <algorithm>
#include <random>

/// A small graph (chain, tree, residuals, clique or several pieces) with many ties, forbidden choices and, half of the
/// time, a memory limit, often one that cannot be met.
inline cfp::cost_graph random_costs(std::mt19937& random) {
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  cfp::cost_graph g;
  const int kind = below(5), nodes = 1 + below(6);
  for (int n = 0; n < nodes; ++n) {
    cfp::cost_node node;
    node.name = std::to_string(n);
    const int choices = 1 + below(4);
    for (int c = 0; c < choices; ++c) {
      node.time.push_back(below(8) == 0 ? std::numeric_limits<double>::infinity() : below(20));  // ties are common
      node.memory.push_back(below(30));
      node.transient.push_back(below(30));
    }
    if (below(4) == 0) node.transient.clear();
    g.nodes.push_back(node);
  }
  for (int b = 1; b < nodes; ++b) {
    const int parent = below(b);
    for (int a = 0; a < b; ++a) {
      const bool joined = kind == 0   ? a == b - 1
                          : kind == 1 ? a == parent
                          : kind == 2 ? a == b - 1 || a == b - 3
                          : kind == 3 ? true
                                      : a == b - 1 && below(2) == 0;
      for (int times = joined + (joined && below(6) == 0); times > 0;
           --times) {  // now and then two edges between two nodes
        cfp::cost_edge e{below(2) ? a : b, 0, {}};
        e.to = e.from == a ? b : a;
        const std::size_t size =
            g.nodes[static_cast<std::size_t>(a)].time.size() * g.nodes[static_cast<std::size_t>(b)].time.size();
        for (std::size_t i = 0; i < size; ++i)
          e.time.push_back(below(10) == 0 ? std::numeric_limits<double>::infinity() : below(12));
        g.edges.push_back(e);
      }
    }
  }
  if (below(2)) g.memory_limit = below(4) == 0 ? below(10) : below(40 * nodes);
  return g;
}

/// Transformer layers: 10 operators in a row, of which two also read what came 5 before (12 edges a layer). Faster
/// choices take more memory, on the whole. With `equal` all layers are the same, else each is a little different.
inline cfp::cost_graph layered_costs(int layers, int choices, unsigned seed, bool equal = false) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> unit(0, 1);
  constexpr int operators = 10;
  const auto size = static_cast<std::size_t>(choices);
  struct joint {
    int from, to;  // within the layer; -1: the last operator of the layer before
    cfp::shared_table time;
  };
  std::vector<cfp::cost_node> nodes(operators);
  std::vector<joint> joints;
  for (int o = 0; o < operators; ++o) {
    cfp::cost_node& n = nodes[static_cast<std::size_t>(o)];
    const double work = 0.5 + 2 * unit(random), bytes = 1e6 * (0.2 + unit(random));
    for (std::size_t c = 0; c < size; ++c) {
      const double lean = unit(random);
      n.time.push_back(work * (0.6 + 0.8 * lean * unit(random)));
      n.memory.push_back(static_cast<std::int64_t>(bytes * (1.2 - lean + 0.3 * unit(random))));
      n.transient.push_back(static_cast<std::int64_t>(0.3 * bytes * unit(random)));
    }
  }
  const auto join = [&](int from, int to) {
    joint j{from, to, {}};
    const double send = 0.1 + unit(random);
    for (std::size_t a = 0; a < size; ++a)
      for (std::size_t b = 0; b < size; ++b) j.time.push_back(a == b ? 0 : send * unit(random));
    joints.push_back(j);
  };
  for (int o = 0; o < operators; ++o) join(o - 1, o);
  join(-1, 4);
  join(4, 9);

  cfp::cost_graph g;
  const auto varied = [&](const cfp::shared_table& times) {
    std::vector<double> other = times;
    for (double& t : other) t *= 1 + 0.05 * unit(random);
    return equal ? times : cfp::shared_table(other);
  };
  for (int l = 0; l < layers; ++l) {
    for (int o = 0; o < operators; ++o) {
      cfp::cost_node n = nodes[static_cast<std::size_t>(o)];
      n.name = std::to_string(l) + "." + std::to_string(o);
      n.time = varied(n.time);
      g.nodes.push_back(n);
    }
    for (const joint& j : joints)
      if (l > 0 || j.from >= 0) g.edges.push_back({l * operators + j.from, l * operators + j.to, varied(j.time)});
  }
  return g;
}
