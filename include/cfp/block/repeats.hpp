// Which segments of a training graph follow one another alike, operation by operation: such of which some can be left
// out without a trace at the borders.
#pragma once

#include <cfp/block/segments.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

namespace cfp::inline v0_1 {

/// The segments of a graph with all that belongs to them. What none of them has belongs to segment -1.
class repeats {
 public:
  repeats(const graph& g, const block_structure& s) : of_operation(g.operations.size(), -1), of_value(g.values.size()) {
    const segmentation found = segments(g, s);
    operations.resize(found.segments.size());
    values.resize(found.segments.size());
    like_next.resize(found.segments.size());
    may_go.assign(found.segments.size(), true);
    place_of_value.resize(g.values.size());
    own_operations(g, s, found);
    own_values(g);
    std::vector<std::string> text;
    for (const std::vector<int>& some : operations) text.push_back(fingerprint(g, some));
    for (std::size_t i = 0; i + 1 < operations.size(); ++i) like_next[i] = text[i] == text[i + 1] && wired_alike(g, i);
    find_who_stays(g);
    for (const std::vector<int>& some : operations) {
      const auto first = std::find_if(some.begin(), some.end(), [&](int o) { return is_forward(g.at(o)); });
      times.push_back(first != some.end() ? g.at(*first).times : 1);
    }
  }

  std::vector<std::vector<int>> operations;  ///< of each segment, with gradients, sums and updates, ascending
  std::vector<std::vector<int>> values;      ///< of each: what it computes, and what it alone reads, as they appear
  std::vector<int> of_operation, of_value;   ///< the segment of each
  std::vector<int> place_of_value;           ///< of each of a segment, among its values
  /// Per segment: whether the next one computes the same, the k-th operation of one what the k-th of the other does,
  /// and reads the same, or what stands where that does in the segment before, of its own, or behind.
  std::vector<bool> like_next;
  std::vector<bool> may_go;  ///< per segment: only neighbours read what it has
  std::vector<long> times;   ///< of each: how many equal ones it stands for (`repeat_layers`)

  bool folded() const {
    return std::any_of(times.begin(), times.end(), [](long n) { return n > 1; });
  }

 private:
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }
  static bool is_forward(const operation& o) { return o.when == phase::forward && o.origin < 0 && o.hub < 0; }
  static bool near(int a, int b) { return b >= 0 && a - b <= 1 && b - a <= 1; }

  void own_operations(const graph& g, const block_structure& s, const segmentation& found) {
    std::vector<int> of_block(s.blocks.size(), -1);
    for (std::size_t i = 0; i < found.segments.size(); ++i)
      for (int b = 0; b < found.segments[i].count; ++b) of_block[at(found.segments[i].first + b)] = static_cast<int>(i);
    for (int o = 0; o < g.size(); ++o) {
      const operation& x = g.at(o);
      const int part = s.part_of[at(o)];
      const int along = part < 0 || is_number(g, x) ? of_last_operand(g, x) : -1;
      const int owner = x.origin >= 0 ? of_operation[at(x.origin)]
                        : along >= 0  ? along
                        : part >= 0   ? of_block[at(s.parts[at(part)].block)]
                                      : -1;
      of_operation[at(o)] = owner;
      if (owner >= 0) operations[at(owner)].push_back(o);
    }
  }
  // Sums of what several segments made run along them, so does what they add to the loss.
  static bool is_number(const graph& g, const operation& o) {
    bool all = o.hub < 0;
    for (const int v : o.results) all = all && g[v].rank() == 0;
    return all;
  }
  int of_last_operand(const graph& g, const operation& o) const {
    for (int k = o.operands.size() - 1; k >= 0; --k)
      if (const int from = g[o.operands[k]].producer; from >= 0 && of_operation[at(from)] >= 0)
        return of_operation[at(from)];
    return -1;
  }

  void own_values(const graph& g) {
    constexpr int nobody = -2;
    of_value.assign(g.values.size(), nobody);
    for (int o = 0; o < g.size(); ++o)
      for (const int v : g.at(o).operands)
        if (g[v].producer < 0) {
          int& owner = of_value[at(v)];
          owner = owner == nobody || owner == of_operation[at(o)] ? of_operation[at(o)] : -1;
        }
    for (int v = 0; v < g.value_count(); ++v) {
      int& owner = of_value[at(v)];
      if (g[v].producer >= 0) owner = of_operation[at(g[v].producer)];
      if (owner == nobody) owner = -1;
    }
    std::vector<bool> seen(g.values.size());
    for (std::size_t i = 0; i < operations.size(); ++i)
      for (const int o : operations[i]) {
        const auto own = [&](int v) {
          if (of_value[at(v)] != static_cast<int>(i) || seen[at(v)]) return;
          seen[at(v)] = true;
          place_of_value[at(v)] = static_cast<int>(values[i].size());
          values[i].push_back(v);
        };
        for (const int v : g.at(o).operands) own(v);
        for (const int v : g.at(o).results) own(v);
      }
  }

  // A segment stays that others than its neighbours read, or several in the same place.
  void find_who_stays(const graph& g) {
    const auto stays = [&](int v) {
      if (of_value[at(v)] >= 0) may_go[at(of_value[at(v)])] = false;
    };
    for (int o = 0; o < g.size(); ++o)
      for (const int v : g.at(o).operands)
        if (!near(of_value[at(v)], of_operation[at(o)])) stays(v);
    for (std::size_t i = 0; i + 1 < operations.size(); ++i)
      for (std::size_t k = 0; like_next[i] && k < operations[i].size(); ++k)
        for (const int v : g.at(operations[i][k]).operands)
          if (g.at(operations[i + 1][k]).operands.contains(v)) stays(v);
  }

  // What the k-th operation reads in segment i and the next.
  bool wired_alike(const graph& g, std::size_t i) const {
    const int here = static_cast<int>(i);
    if (values[i].size() != values[i + 1].size()) return false;
    for (std::size_t k = 0; k < operations[i].size(); ++k) {
      const operation &a = g.at(operations[i][k]), &b = g.at(operations[i + 1][k]);
      if (a.when != b.when) return false;
      for (int n = 0; n < a.operands.size(); ++n) {
        const int u = a.operands[n], v = b.operands[n], from = of_value[at(u)];
        const bool moves_on = from >= 0 && near(from, here) && of_value[at(v)] == from + 1 &&
                              place_of_value[at(u)] == place_of_value[at(v)];
        if (u != v && !moves_on) return false;
      }
    }
    return true;
  }
};

}  // namespace cfp
