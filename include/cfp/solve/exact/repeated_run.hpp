// Runs of equal segments, found where tables are shared: node n + period has the tables of node n, and its edges lead
// to nodes further by the period too, or to the very same node outside the run (a tied weight, a mask).
#pragma once

#include <cfp/core/repetition.hpp>
#include <cfp/solve/cost_graph.hpp>

#include <algorithm>
#include <functional>
#include <optional>
#include <set>

namespace cfp::inline v0_1::detail {

struct repeated_run {
  std::size_t first = 0, period = 0, count = 0;
  std::vector<std::size_t> outside;   // nodes that every copy has the same edges to
  std::vector<std::size_t> boundary;  // offsets of nodes with edges to the next copy
};

class repeat_finder {
 public:
  explicit repeat_finder(const cost_graph& g) : g_(g), begin_(g.nodes.size() + 1, 0) {
    for (const cost_edge& e : g.edges)
      ++begin_[static_cast<std::size_t>(e.from) + 1], ++begin_[static_cast<std::size_t>(e.to) + 1];
    for (std::size_t n = 0; n < g.nodes.size(); ++n) begin_[n + 1] += begin_[n];
    ends_.resize(2 * g.edges.size());
    std::vector<std::size_t> next(begin_.begin(), begin_.end() - 1);
    for (const cost_edge& e : g.edges) {
      const auto from = static_cast<std::size_t>(e.from), to = static_cast<std::size_t>(e.to);
      ends_[next[from]++] = {e.time.id(), true, to};
      ends_[next[to]++] = {e.time.id(), false, from};
    }
    for (std::size_t n = 0; n < g.nodes.size(); ++n)
      std::sort(ends_.begin() + static_cast<std::ptrdiff_t>(begin_[n]),
                ends_.begin() + static_cast<std::ptrdiff_t>(begin_[n + 1]));
  }

  /// The longest run through the middle of the graph, or a quarter of it, if there is one of `least` copies.
  std::optional<repeated_run> find(std::size_t least) {
    const std::size_t n = g_.nodes.size();
    for (const std::size_t start : {n / 2, n / 4, n - n / 4})
      for (std::size_t period = 1; period * least <= n && start + 2 * period <= n; ++period)
        if (const std::size_t alike = repeats_from(start, period); alike >= period)
          if (auto run = widen(start, start + alike, period); run && run->count >= least) return run;
    return std::nullopt;
  }

 private:
  struct end {
    const void* table;
    bool is_from;
    std::size_t other;
    friend bool operator<(const end& a, const end& b) {
      if (a.table != b.table) return std::less<>()(a.table, b.table);
      return a.is_from != b.is_from ? b.is_from : a.other < b.other;
    }
  };

  // Whether node m is as node n, before it.
  bool twins(std::size_t n, std::size_t m) {
    if (!g_.nodes[n].time.is(g_.nodes[m].time) || begin_[n + 1] - begin_[n] != begin_[m + 1] - begin_[m]) return false;
    for (std::size_t a = begin_[n], b = begin_[m]; a < begin_[n + 1]; ++a, ++b) {
      const end &x = ends_[a], &y = ends_[b];
      if (x.table != y.table || x.is_from != y.is_from || (y.other != x.other && y.other != x.other + m - n))
        return false;
    }
    return true;
  }

  std::size_t repeats_from(std::size_t start, std::size_t period) {
    return repeats_for(start, period, g_.nodes.size(), [&](std::size_t n, std::size_t m) { return twins(n, m); });
  }

  // Nodes in [low, high) have twins.
  std::optional<repeated_run> widen(std::size_t low, std::size_t high, std::size_t period) {
    while (low > 0 && twins(low - 1, low - 1 + period)) --low;
    repeated_run run{low, period, (high + period - low) / period, {}, {}};
    if (run.count < 4) return std::nullopt;
    // All copies but the first and the last look alike: what the second one's nodes are joined to says it all.
    std::set<std::size_t> outside, boundary;
    for (std::size_t j = 0; j < period; ++j) {
      const std::size_t n = low + period + j;
      for (std::size_t a = begin_[n], b = begin_[n + period]; a < begin_[n + 1]; ++a, ++b) {
        const std::size_t other = ends_[a].other;
        if (ends_[b].other == other) {
          if (other >= low && other < low + run.count * period) return std::nullopt;
          outside.insert(other);
        } else if (other < low || other >= low + 3 * period) {
          return std::nullopt;  // further than the next copy
        } else if (other >= low + 2 * period) {
          boundary.insert(j);
        }
      }
    }
    for (std::size_t n = low + 2 * period; n < low + (run.count - 1) * period; ++n)
      for (std::size_t a = begin_[n], b = begin_[n - period]; a < begin_[n + 1]; ++a, ++b)
        if ((ends_[a].other == ends_[b].other) != (outside.count(ends_[a].other) > 0)) return std::nullopt;
    run.outside.assign(outside.begin(), outside.end());
    run.boundary.assign(boundary.begin(), boundary.end());
    return run;
  }

  const cost_graph& g_;
  std::vector<std::size_t> begin_;  // where a node's ends begin
  std::vector<end> ends_;           // of edges, by table: in the same order for nodes that have the same ones
};

}  // namespace cfp::detail
