#pragma once

// In which order to eliminate nodes, so that the tables on the way stay small.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <set>
#include <stop_token>
#include <tuple>
#include <vector>

#include "budget.hpp"
#include "problem.hpp"

namespace cfp::inline v0_1::detail {

/// Greedy rules: next comes the node whose own table is smallest, or the one that adds the least weight of
/// new edges between its neighbours (which looks further ahead, and is usually but not always better).
enum class order_rule { least_table, least_fill };

struct elimination_order {
  std::vector<std::size_t> nodes;
  double steps = 0;  // additions in all tables together, if none is split
};

/// Plays elimination on the graph alone. Where a node's table would exceed `max_table` entries its neighbours
/// are not joined, since such a table is going to be split anyway.
class order_search {
 public:
  order_search(const problem& p, order_rule rule, double max_table)
      : rule_(rule),
        max_weight_(weight(max_table)),
        neighbours_(p.nodes.size()),
        own_(p.nodes.size()),
        table_(p.nodes.size()),
        key_(p.nodes.size()) {
    for (std::size_t n = 0; n < own_.size(); ++n) own_[n] = weight(static_cast<double>(p.nodes[n].size()));
    table_ = own_;
    for (const problem_edge& e : p.edges) join(e.from, e.to);
    for (std::size_t n = 0; n < own_.size(); ++n) queue_.insert(key_[n] = key(n));
  }

  /// Throws `stopped` once `stop` is requested.
  elimination_order run(const std::stop_token& stop) {
    elimination_order order;
    while (!queue_.empty()) {
      leave_if(stop);
      const entry first = *queue_.begin();
      const std::size_t n = std::get<2>(first);
      queue_.erase(queue_.begin());
      if (rule_ == order_rule::least_fill) {  // edges further away may have changed it
        const entry now = key(n);
        if (now > first) {
          queue_.insert(key_[n] = now);
          continue;
        }
      }
      order.nodes.push_back(n);
      order.steps += std::exp2(static_cast<double>(table_[n]) / unit);
      remove(n);
    }
    return order;
  }

 private:
  using entry = std::tuple<double, std::int64_t, std::size_t>;  // what the rule says, table, node

  // Logarithms of table sizes in integers, so that adding and subtracting neighbours leaves no rounding
  // behind.
  static constexpr double unit = 1 << 20;
  static std::int64_t weight(double size) { return static_cast<std::int64_t>(std::log2(size) * unit); }

  static constexpr std::size_t max_fill_degree = 48;  // counting fill is quadratic in the degree

  void join(std::size_t a, std::size_t b) {
    if (!neighbours_[a].insert(b).second) return;
    neighbours_[b].insert(a);
    table_[a] += own_[b];
    table_[b] += own_[a];
  }

  [[nodiscard]] double fill(std::size_t n) const {
    const std::set<std::size_t>& around = neighbours_[n];
    if (around.size() > max_fill_degree) return infinite_time;
    double total = 0;
    for (auto a = around.begin(); a != around.end(); ++a) {
      for (auto b = std::next(a); b != around.end(); ++b) {
        if (!neighbours_[*a].count(*b)) total += std::exp2(static_cast<double>(own_[*a] + own_[*b]) / unit);
      }
    }
    return total;
  }

  [[nodiscard]] entry key(std::size_t n) const {
    return {rule_ == order_rule::least_fill ? fill(n) : 0.0, table_[n], n};
  }

  void remove(std::size_t n) {
    const std::set<std::size_t> around = std::move(neighbours_[n]);
    for (const std::size_t a : around) {
      neighbours_[a].erase(n);
      table_[a] -= own_[n];
    }
    if (table_[n] - own_[n] <= max_weight_) {
      for (auto a = around.begin(); a != around.end(); ++a) {
        for (auto b = std::next(a); b != around.end(); ++b) join(*a, *b);
      }
    }
    for (const std::size_t a : around) {
      queue_.erase(key_[a]);
      queue_.insert(key_[a] = key(a));
    }
  }

  order_rule rule_;
  std::int64_t max_weight_;
  std::vector<std::set<std::size_t>> neighbours_;
  std::vector<std::int64_t> own_;    // log2 of the number of choices, in units
  std::vector<std::int64_t> table_;  // log2 of the choices of the node and its neighbours together, in units
  std::vector<entry> key_;
  std::set<entry> queue_;
};

/// The cheaper of the orders that the two rules give.
inline std::vector<std::size_t> find_elimination_order(const problem& p, double max_table, const std::stop_token& stop) {
  elimination_order by_table = order_search(p, order_rule::least_table, max_table).run(stop);
  elimination_order by_fill = order_search(p, order_rule::least_fill, max_table).run(stop);
  return by_fill.steps < by_table.steps ? std::move(by_fill.nodes) : std::move(by_table.nodes);
}

}  // namespace cfp::detail
