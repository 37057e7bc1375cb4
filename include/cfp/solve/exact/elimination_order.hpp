#pragma once

// In which order to eliminate nodes, so that the tables on the way stay small.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <set>
#include <stop_token>
#include <tuple>
#include <vector>

#include <cfp/solve/memory/budget.hpp>
#include <cfp/solve/problem.hpp>

namespace cfp::inline v0_1::detail {

/// Greedy rules: next comes the node whose own table is smallest, or the one that adds the least weight of
/// new edges between its neighbours (which looks further ahead, and is usually but not always better).
enum class order_rule { least_table, least_fill };

struct elimination_order {
  std::vector<std::size_t> nodes;
  bool splits = false;  // a table is too large
  double steps = 0;     // additions in all tables together, if none is split

  bool operator<(const elimination_order& other) const {
    return splits != other.splits ? other.splits : steps < other.steps;
  }
};

/// Plays elimination on the graph alone. Where a node's table would exceed `max_table` entries its neighbours
/// are not joined, since such a table is going to be split anyway.
class order_search {
 public:
  /// By `errors` the rule misjudges each node: a power of 2, in units. Nodes in `last` are not eliminated.
  order_search(const problem& p, order_rule rule, double max_table, std::vector<std::int64_t> errors,
               const std::vector<std::size_t>& last = {})
      : rule_(rule), max_weight_(weight(max_table)), neighbours_(p.nodes.size()), own_(p.nodes.size()),
        error_(std::move(errors)), table_(p.nodes.size()), key_(p.nodes.size()) {
    for (std::size_t n = 0; n < own_.size(); ++n) own_[n] = weight(static_cast<double>(p.nodes[n].size()));
    table_ = own_;
    for (const problem_edge& e : p.edges) join(e.from, e.to);
    for (std::size_t n = 0; n < own_.size(); ++n) queue_.insert(key_[n] = key(n));
    waits_.assign(own_.size(), 0);
    for (const std::size_t n : last) {
      waits_[n] = 1;
      queue_.erase(key_[n]);
    }
  }

  /// Gives up, some nodes left out, once it is no better than `to_beat`. Throws `stopped` once `stop` is requested.
  elimination_order run(const std::stop_token& stop, const elimination_order* to_beat = nullptr) {
    elimination_order order;
    while (!queue_.empty() && (!to_beat || order < *to_beat)) {
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
      order.splits = order.splits || table_[n] - own_[n] > max_weight_;
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
    const double added =
        rule_ == order_rule::least_fill ? fill(n) * std::exp2(static_cast<double>(error_[n]) / unit) : 0.0;
    return {added, table_[n] + error_[n], n};
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
      if (waits_[a]) continue;
      queue_.erase(key_[a]);
      queue_.insert(key_[a] = key(a));
    }
  }

  order_rule rule_;
  std::int64_t max_weight_;
  std::vector<std::set<std::size_t>> neighbours_;
  std::vector<std::int64_t> own_;    // log2 of the number of choices, in units
  std::vector<std::int64_t> error_;  // of the rule, likewise
  std::vector<std::int64_t> table_;  // log2 of the choices of the node and its neighbours together, in units
  std::vector<entry> key_;
  std::vector<char> waits_;  // 1: not eliminated
  std::set<entry> queue_;
};

/// The cheaper of the orders that the two rules give, improved as long as looking takes a small part of what may be
/// saved: the second rule misjudges a few more nodes each time, which stays if the order is cheaper for it. On graphs
/// with many nodes alike (the corrections of `correction.hpp`) the rules alone can be off by a factor of 50.
/// Nodes in `last` come last, in that order.
inline std::vector<std::size_t> find_elimination_order(const problem& p, double max_table, const std::stop_token& stop,
                                                       const std::vector<std::size_t>& last = {}) {
  constexpr double steps_per_node = 4e4;  // per look: over ten times what one takes
  constexpr int most_looks = 400;
  std::vector<std::int64_t> errors(p.nodes.size(), 0);
  elimination_order best = order_search(p, order_rule::least_table, max_table, errors, last).run(stop);
  const auto look = [&](const std::vector<std::int64_t>& with) {
    elimination_order other = order_search(p, order_rule::least_fill, max_table, with, last).run(stop, &best);
    if (!(other < best)) return;
    best = std::move(other);
    errors = with;
  };
  look(errors);
  std::mt19937 random(1);
  const double cost = steps_per_node * static_cast<double>(p.nodes.size());
  for (int looks = 1; looks <= most_looks && looks * cost < best.steps; ++looks) {
    std::vector<std::int64_t> others = errors;
    for (std::int64_t& e : others)
      if (random() % 20 == 0) e = static_cast<std::int64_t>(random() % (1u << 22)) - (1 << 21);
    look(others);
  }
  best.nodes.insert(best.nodes.end(), last.begin(), last.end());
  return std::move(best.nodes);
}

}  // namespace cfp::detail
