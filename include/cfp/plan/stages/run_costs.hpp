// The costs of decisions by segments.
#pragma once

#include <cfp/block/decisions.hpp>
#include <cfp/plan/stages/needless_choices.hpp>
#include <cfp/plan/stages/run_part.hpp>
#include <cfp/plan/stages/stage_segments.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace cfp::inline v0_1 {

class run_costs {
 public:
  /// `all`: also choices that no stage needs. `some`: which of all choices the decisions have, if not all.
  run_costs(const graph& g, const stage_segments& r, const decision_graph& d, stage_costs costs, bool all = false,
            std::optional<fewer_choices> some = std::nullopt)
      : costs_(std::move(costs)), left_(std::move(some)), nodes_(r.first.size()), edges_(r.first.size()),
        place_(d.nodes.size()), kind_(r.first.size()) {
    std::vector<int> segment(d.nodes.size());
    int last = 0;
    for (std::size_t n = 0; n < d.nodes.size(); ++n) {
      const int of = segment_of(g, r, d.nodes[n]);
      segment[n] = last = of >= 0 ? of : last;
      place_[n] = static_cast<int>(nodes_[at(last)].size());
      nodes_[at(last)].push_back(n);
    }
    for (std::size_t e = 0; e < d.edges.size(); ++e) {
      const int a = segment[at(d.edges[e].from)], b = segment[at(d.edges[e].to)];
      edges_[at(std::max(a, b))].push_back({e, std::min(a, b), b - a});
    }
    for (int i = 0; i < segments(); ++i) find_kinds(i);
    std::vector<int> alone;
    for (int i = 0; i < segments(); ++i) alone.push_back(kind(i, 0));
    if (all) return;
    leave(fewer_choices(detail::needless_choices(costs_, nodes_, alone).needed(), left()));
  }
  /// Choices of decisions, by the kind of their segment and their place in it.
  using choices_taken = std::map<std::pair<int, int>, std::set<int>>;
  /// The same costs with no other choices, but all where none is known.
  run_costs(const run_costs& all, const choices_taken& only) : run_costs(all) {
    std::vector<std::vector<char>> keep(place_.size());
    for (int i = 0; i < segments(); ++i)
      for (const std::size_t n : nodes_[at(i)]) {
        keep[n].assign(costs_.whole.nodes[n].time.size(), 1);
        const auto known = only.find({kind(i, 0), place_[n]});
        for (std::size_t c = 0; known != only.end() && c < keep[n].size(); ++c)
          keep[n][c] = known->second.contains(left_ ? left_->was(n, static_cast<int>(c)) : static_cast<int>(c));
        if (std::count(keep[n].begin(), keep[n].end(), 1) == 0) keep[n].assign(keep[n].size(), 1);
      }
    leave(fewer_choices(keep, left()));
  }
  /// Takes those of a stage.
  void take(int first, int end, const std::vector<int>& of_decisions, choices_taken& to) const {
    for (int i = first; i < end; ++i)
      for (const std::size_t n : nodes_[at(i)]) to[{kind(i, 0), place_[n]}].insert(of_decisions[n]);
  }
  run_costs& operator=(const run_costs&) = delete;

  /// Of all choices; none: all.
  const fewer_choices* left() const { return left_ ? &*left_ : nullptr; }
  int segments() const { return static_cast<int>(nodes_.size()); }
  /// Runs of the same numbers have the same costs.
  std::vector<int> kinds(int first, int end) const {
    std::vector<int> out;
    for (int i = first; i < end; ++i) out.push_back(kind(i, i - first));
    return out;
  }
  std::vector<std::size_t> nodes(int first, int end) const {
    std::vector<std::size_t> out;
    for (int i = first; i < end; ++i) out.insert(out.end(), nodes_[at(i)].begin(), nodes_[at(i)].end());
    return out;
  }

  run_part part(int first, int end) const {
    run_part out{&costs_, left(), nodes(first, end), {}, {}};
    std::vector<int> number(place_.size(), -1);
    for (const std::size_t n : out.nodes) {
      number[n] = static_cast<int>(out.costs.nodes.size());
      out.costs.nodes.push_back(costs_.whole.nodes[n]);
    }
    for (int i = first; i < end; ++i)
      for (const inner_edge& e : edges_[at(i)]) {
        if (e.lowest < first) continue;
        const cost_edge& x = costs_.whole.edges[e.edge];
        out.edges.push_back(e.edge);
        out.costs.edges.push_back({number[at(x.from)], number[at(x.to)], x.time});
      }
    return out;
  }

 private:
  struct inner_edge {
    std::size_t edge = 0;
    int lowest = 0, along = 0;  // the first segment of its ends, and how many it goes on
  };
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }
  run_costs(const run_costs&) = default;

  void leave(fewer_choices some) {
    left_.emplace(std::move(some));
    for (cost_graph stage_costs::*const of : {&stage_costs::whole, &stage_costs::forward, &stage_costs::backward,
                                              &stage_costs::once, &stage_costs::resting})
      costs_.*of = left_->of(std::move(costs_.*of));
  }

  static int segment_of(const graph& g, const stage_segments& r, const decision& n) {
    for (const int o : n.operations)
      if (r.of_operation[at(o)] >= 0) return r.of_operation[at(o)];
    if (!n.operations.empty()) return -1;
    const int maker = g[n.index].producer;
    return maker >= 0 ? r.of_operation[at(maker)] : r.of_value[at(n.index)];
  }

  // Of a segment with so many before it: edges from further ones are not there.
  int kind(int i, int before) const { return std::prev(kind_[at(i)].upper_bound(before))->second; }

  // Segments whose numbers are equal are of one kind. Edges may come from far, such as those of what all layers read:
  // with one edge more a kind is another one, known by the kind without it.
  void find_kinds(int i) {
    std::vector<int> key{-1};
    for (const std::size_t n : nodes_[at(i)]) {
      const cost_node& x = costs_.whole.nodes[n];
      for (const cost_graph* const c : {&costs_.whole, &costs_.forward, &costs_.once, &costs_.resting})
        key.push_back(number_of(c->nodes[n].time));
      for (const auto& bytes : {x.memory, x.transient})
        key.push_back(memory_.try_emplace(bytes, static_cast<int>(memory_.size())).first->second);
    }
    std::stable_sort(edges_[at(i)].begin(), edges_[at(i)].end(),
                     [](const inner_edge& a, const inner_edge& b) { return a.lowest > b.lowest; });
    const auto take = [&](int before) {
      return kind_[at(i)][before] = kinds_.try_emplace(key, static_cast<int>(kinds_.size())).first->second;
    };
    int without = take(0);
    for (const inner_edge& e : edges_[at(i)]) {
      const cost_edge& x = costs_.whole.edges[e.edge];
      const int from = place_[at(x.from)], to = place_[at(x.to)];
      key = {without, e.along, i - e.lowest, from, to};
      for (const cost_graph* const c : {&costs_.whole, &costs_.forward, &costs_.once})
        key.push_back(number_of(c->edges[e.edge].time));
      without = take(i - e.lowest);
    }
  }
  int number_of(const shared_table& t) {
    const auto [known, fresh] = tables_.try_emplace(t.id(), 0);
    if (fresh) known->second = numbers_.try_emplace(t.all(), static_cast<int>(numbers_.size())).first->second;
    return known->second;
  }

  stage_costs costs_;
  std::optional<fewer_choices> left_;
  std::vector<std::vector<std::size_t>> nodes_;  // of each segment
  std::vector<std::vector<inner_edge>> edges_;   // of each, that the last of their ends is in
  std::vector<int> place_;                       // of each node, among those of its segment
  std::vector<std::map<int, int>> kind_;         // of each segment, from so many before it on
  std::map<std::vector<int>, int> kinds_;
  std::map<const void*, int> tables_;           // numbers of tables, by which they are
  std::map<std::vector<double>, int> numbers_;  // and by what they hold
  std::map<std::vector<std::int64_t>, int> memory_;
};

}  // namespace cfp
