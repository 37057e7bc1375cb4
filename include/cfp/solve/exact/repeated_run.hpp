// Runs of equal segments of a problem. Nodes are looked at in an order that keeps neighbours together, in which node
// i + period has the figures of node i, and its edges lead to nodes further by the period too, or to the very same node
// outside the run (a tied weight, a mask).
#pragma once

#include <cfp/core/repetition.hpp>
#include <cfp/solve/problem.hpp>

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>

namespace cfp::inline v0_1::detail {

struct repeated_run {
  std::vector<std::size_t> order;  ///< all nodes; the run is in [first, first + count * period)
  std::size_t first = 0, period = 0, count = 0;
  std::vector<std::size_t> outside;   ///< nodes that every copy has the same edges to
  std::vector<std::size_t> boundary;  ///< offsets of nodes with edges to the next copy

  /// The j-th node of a copy.
  [[nodiscard]] std::size_t node(std::size_t copy, std::size_t j) const { return order[first + copy * period + j]; }
};

class repeat_finder {
 public:
  /// Looks at nodes in the order of the problem, or each `behind` the first of its neighbours.
  repeat_finder(const problem& p, bool behind) : p_(p), order_(p.nodes.size()), begin_(p.nodes.size() + 1, 0) {
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    if (behind) put_in_order();
    number_figures();
    std::vector<std::size_t> place(order_.size());
    for (std::size_t i = 0; i < order_.size(); ++i) place[order_[i]] = i;
    for (const problem_edge& e : p.edges) ++begin_[place[e.from] + 1], ++begin_[place[e.to] + 1];
    for (std::size_t i = 0; i < order_.size(); ++i) begin_[i + 1] += begin_[i];
    ends_.resize(2 * p.edges.size());
    std::vector<std::size_t> next(begin_.begin(), begin_.end() - 1);
    std::map<std::vector<double>, std::size_t> equal;
    std::map<const void*, std::size_t> number;
    for (const problem_edge& e : p.edges) {
      const auto [at, fresh] = number.try_emplace(e.time.id());
      if (fresh) at->second = equal.try_emplace(e.time, equal.size()).first->second;
      ends_[next[place[e.from]]++] = {at->second, true, place[e.to]};
      ends_[next[place[e.to]]++] = {at->second, false, place[e.from]};
    }
    for (std::size_t i = 0; i < order_.size(); ++i)
      std::sort(ends_.begin() + static_cast<std::ptrdiff_t>(begin_[i]),
                ends_.begin() + static_cast<std::ptrdiff_t>(begin_[i + 1]));
  }

  /// The longest run through the middle of the problem, or a quarter of it, if there is one of `least` copies.
  std::optional<repeated_run> find(std::size_t least) {
    const std::size_t n = order_.size();
    for (const std::size_t start : {n / 2, n / 4, n - n / 4})
      for (std::size_t period = 1; period * least <= n && start + 2 * period <= n; ++period)
        if (const std::size_t alike = repeats_from(start, period); alike >= period)
          if (auto run = widen(start, start + alike, period); run && run->count >= least) return run;
    return std::nullopt;
  }

 private:
  struct end {
    std::size_t table;
    bool is_from;
    std::size_t other;
    friend bool operator<(const end& a, const end& b) {
      return std::tie(a.table, a.is_from, a.other) < std::tie(b.table, b.is_from, b.other);
    }
  };

  // What is joined to very many is outside of runs and attracts nothing.
  void put_in_order() {
    constexpr std::size_t many = 16;
    std::vector<std::size_t> behind = order_, neighbours(order_.size(), 0);
    for (const problem_edge& e : p_.edges) ++neighbours[e.from], ++neighbours[e.to];
    const auto attract = [&](std::size_t n, std::size_t to) {
      if (neighbours[to] <= many) behind[n] = std::min(behind[n], to);
    };
    for (const problem_edge& e : p_.edges) attract(e.from, e.to), attract(e.to, e.from);
    std::stable_sort(order_.begin(), order_.end(), [&](std::size_t a, std::size_t b) { return behind[a] < behind[b]; });
  }

  void number_figures() {
    std::map<std::tuple<std::vector<double>, std::vector<std::int64_t>, std::vector<std::int64_t>>, std::size_t> equal;
    for (const std::size_t n : order_) {
      const problem_node& node = p_.nodes[n];
      figures_.push_back(equal.try_emplace({node.time, node.memory, node.transient}, equal.size()).first->second);
    }
  }

  // Whether what is at place m is as what is at place n, before it.
  bool twins(std::size_t n, std::size_t m) {
    if (figures_[n] != figures_[m] || begin_[n + 1] - begin_[n] != begin_[m + 1] - begin_[m]) return false;
    for (std::size_t a = begin_[n], b = begin_[m]; a < begin_[n + 1]; ++a, ++b) {
      const end &x = ends_[a], &y = ends_[b];
      if (x.table != y.table || x.is_from != y.is_from || (y.other != x.other && y.other != x.other + m - n))
        return false;
    }
    return true;
  }

  std::size_t repeats_from(std::size_t start, std::size_t period) {
    return repeats_for(start, period, order_.size(), [&](std::size_t n, std::size_t m) { return twins(n, m); });
  }

  // What is at places in [low, high) has twins. Where a copy begins is open: the fewer choices its end has, the better.
  std::optional<repeated_run> widen(std::size_t low, std::size_t high, std::size_t period) {
    while (low > 0 && twins(low - 1, low - 1 + period)) --low;
    std::optional<repeated_run> best;
    double fewest = std::numeric_limits<double>::infinity();
    for (std::size_t at = low; at < low + period; ++at) {
      std::optional<repeated_run> run = cut(at, (high + period - at) / period, period);
      if (!run) continue;
      double states = 1;
      for (const std::size_t j : run->boundary) states *= static_cast<double>(p_.nodes[order_[at + j]].size());
      if (states >= fewest) continue;
      fewest = states;
      best = std::move(run);
    }
    if (best && !alike_outside(*best)) return std::nullopt;
    if (best) best->order = order_;
    return best;
  }

  // So many copies from a place on, the order left out.
  std::optional<repeated_run> cut(std::size_t low, std::size_t count, std::size_t period) const {
    if (count < 4) return std::nullopt;
    repeated_run run{{}, low, period, count, {}, {}};
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
    for (const std::size_t place : outside) run.outside.push_back(order_[place]);
    run.boundary.assign(boundary.begin(), boundary.end());
    return run;
  }

  // Whether all copies are joined to the same nodes outside.
  bool alike_outside(const repeated_run& run) const {
    const std::set<std::size_t> outside(run.outside.begin(), run.outside.end());
    const auto out = [&](const end& e) { return outside.count(order_[e.other]) > 0; };
    for (std::size_t n = run.first + 2 * run.period; n < run.first + (run.count - 1) * run.period; ++n)
      for (std::size_t a = begin_[n], b = begin_[n - run.period]; a < begin_[n + 1]; ++a, ++b)
        if ((ends_[a].other == ends_[b].other) != out(ends_[a])) return false;
    return true;
  }

  const problem& p_;
  std::vector<std::size_t> order_;    // node at each place
  std::vector<std::size_t> figures_;  // at each place: equal numbers for equal figures
  std::vector<std::size_t> begin_;    // where the ends at a place begin
  std::vector<end> ends_;             // of edges, by table: in the same order for nodes that have the same ones
};

/// A run of `least` copies, if there is one.
inline std::optional<repeated_run> find_run(const problem& p, std::size_t least) {
  for (const bool behind : {true, false})
    if (auto run = repeat_finder(p, behind).find(least)) return run;
  return std::nullopt;
}

}  // namespace cfp::detail
