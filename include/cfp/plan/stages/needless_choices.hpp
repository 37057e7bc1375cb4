// Choices of decisions that no stage needs: another choice of the same decision takes no more time and no more memory
// of any kind, wherever the stage begins and ends, and however many micro-batches it has under way.
#pragma once

#include <cfp/plan/stages/stage_pricing.hpp>
#include <cfp/solve/cost_graph.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <utility>
#include <vector>

namespace cfp::inline v0_1::detail {

/// Segments of one kind lose the same. Choices go one at a time, so of two equal ones one stays.
class needless_choices {
 public:
  /// `nodes` of each segment, and the kind of each.
  needless_choices(const stage_costs& costs, const std::vector<std::vector<std::size_t>>& nodes,
                   const std::vector<int>& kinds)
      : costs_(costs), nodes_(nodes), segment_(costs.whole.nodes.size()), edges_(costs.whole.nodes.size()) {
    for (std::size_t s = 0; s < nodes.size(); ++s) {
      segments_[kinds[s]].push_back(s);
      for (const std::size_t n : nodes[s]) segment_[n] = s;
    }
    for (std::size_t e = 0; e < costs.whole.edges.size(); ++e)
      for (const int end : {costs.whole.edges[e].from, costs.whole.edges[e].to}) edges_[at(end)].push_back(e);
    needed_.resize(segment_.size());
    for (std::size_t n = 0; n < segment_.size(); ++n) needed_[n].assign(costs.whole.nodes[n].time.size(), 1);
    for (const auto& [kind, alike] : segments_) drop_in(alike);
  }

  /// Per node and choice: 1 where a stage may need it.
  const std::vector<std::vector<char>>& needed() const { return needed_; }

 private:
  // What an edge adds to each choice of a node: at least so much, and so much above it for each choice at its other
  // end, or for its not being there.
  struct edge_rows {
    std::vector<double> least, above;
    std::size_t width = 0;
  };
  using rows_of_edges = std::vector<edge_rows>;
  static constexpr double never = std::numeric_limits<double>::infinity();
  static constexpr int rounds = 4;  // a drop can enable another at a neighbour, but rarely for long
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }

  void drop_in(const std::vector<std::size_t>& alike) {
    bool changed = true;
    for (int round = 0; changed && round < rounds; ++round) {
      changed = false;
      for (std::size_t place = 0; place < nodes_[alike[0]].size(); ++place) changed = drop_of(alike, place) || changed;
    }
  }

  bool drop_of(const std::vector<std::size_t>& alike, std::size_t place) {
    const std::vector<rows_of_edges> rows = all_rows(alike, place);
    std::vector<char>& needed = needed_[nodes_[alike[0]][place]];
    bool changed = false;
    for (std::size_t c = 0; c < needed.size(); ++c) {
      if (needed[c] == 0) continue;
      for (std::size_t by = 0; by < needed.size() && needed[c] != 0; ++by)
        if (by != c && needed[by] != 0 && no_more_memory(alike, place, by, c) &&
            std::all_of(rows.begin(), rows.end(),
                        [&](const rows_of_edges& edges) { return no_slower(nodes_[alike[0]][place], edges, by, c); }))
          needed[c] = 0, changed = true;
    }
    if (changed)
      for (const std::size_t s : alike) needed_[nodes_[s][place]] = needed;
    return changed;
  }

  // Edges of such a node, for every set of them that there is: segments alike may be followed by different ones.
  std::vector<rows_of_edges> all_rows(const std::vector<std::size_t>& alike, std::size_t place) const {
    std::map<std::vector<std::pair<const void*, bool>>, std::size_t> known;  // by tables, and which end it is
    std::vector<rows_of_edges> out;
    for (const std::size_t s : alike) {
      const std::size_t n = nodes_[s][place];
      std::vector<std::pair<const void*, bool>> key;
      for (const std::size_t e : edges_[n]) {
        const cost_edge& x = costs_.whole.edges[e];
        key.emplace_back(x.time.id(), at(x.from) == n);
      }
      std::sort(key.begin(), key.end());
      if (!known.try_emplace(std::move(key), out.size()).second) continue;
      out.emplace_back();
      for (const std::size_t e : edges_[n]) out.back().push_back(rows_of(n, costs_.whole.edges[e]));
    }
    return out;
  }
  edge_rows rows_of(std::size_t n, const cost_edge& e) const {
    const bool first = at(e.from) == n;
    const std::size_t other = at(first ? e.to : e.from), columns = costs_.whole.nodes[at(e.to)].time.size();
    const bool may_be_cut = segment_[other] != segment_[n];
    edge_rows out;
    for (std::size_t c = 0; c < needed_[n].size(); ++c) {
      const std::size_t begin = out.above.size();
      if (may_be_cut) out.above.push_back(0);
      for (std::size_t x = 0; x < needed_[other].size(); ++x)
        if (may_be_cut || needed_[other][x] != 0)
          out.above.push_back(first ? e.time[c * columns + x] : e.time[x * columns + c]);
      out.width = out.above.size() - begin;
      out.least.push_back(*std::min_element(out.above.begin() + static_cast<std::ptrdiff_t>(begin), out.above.end()));
      for (std::size_t i = begin; out.least.back() < never && i < out.above.size(); ++i)
        out.above[i] -= out.least.back();
    }
    return out;
  }

  bool no_slower(std::size_t n, const rows_of_edges& edges, std::size_t by, std::size_t than) const {
    const shared_table& time = costs_.whole.nodes[n].time;
    double base = time[by], allowed = time[than];
    for (const edge_rows& e : edges) base += e.least[by], allowed += e.least[than];
    if (allowed == never) return true;  // no plan takes it
    for (const edge_rows& e : edges) {
      const double *a = e.above.data() + by * e.width, *b = e.above.data() + than * e.width;
      double most = 0;
      for (std::size_t x = 0; x < e.width && base + most <= allowed; ++x)
        if (b[x] < never) most = std::max(most, a[x] - b[x]);
      base += most;
      if (!(base <= allowed)) return false;
    }
    return base <= allowed;
  }
  bool no_more_memory(const std::vector<std::size_t>& alike, std::size_t place, std::size_t by,
                      std::size_t than) const {
    const std::size_t n = nodes_[alike[0]][place];
    const cost_node& node = costs_.whole.nodes[n];
    const shared_table& resting = costs_.resting.nodes[n].time;
    const auto rests = [&](std::size_t c) { return resting.empty() ? 0 : resting[c]; };
    const auto kept = [&](std::size_t c) { return static_cast<double>(node.memory[c]) - rests(c); };
    return rests(by) <= rests(than) && kept(by) <= kept(than) &&
           (node.transient.empty() || node.transient[by] <= node.transient[than]);
  }

  const stage_costs& costs_;
  const std::vector<std::vector<std::size_t>>& nodes_;
  std::map<int, std::vector<std::size_t>> segments_;  // of each kind
  std::vector<std::size_t> segment_;                  // of each node
  std::vector<std::vector<std::size_t>> edges_;       // of each node
  std::vector<std::vector<char>> needed_;
};

}  // namespace cfp::inline v0_1::detail
