// Cost graphs with only some of the choices of their nodes.
#pragma once

#include <cfp/solve/cost_graph.hpp>

#include <cstddef>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

namespace cfp::inline v0_1 {

/// Made of what is kept, for any graph of the same nodes and edges. Tables that were shared still are.
class fewer_choices {
 public:
  /// `keep`, per node and choice: 1 to keep it; of those that `before` left, if given.
  explicit fewer_choices(const std::vector<std::vector<char>>& keep, const fewer_choices* before = nullptr) {
    std::map<std::pair<std::vector<char>, std::size_t>, std::size_t> known;
    for (std::size_t n = 0; n < keep.size(); ++n) {
      const auto [at, fresh] = known.try_emplace({keep[n], before != nullptr ? before->set_[n] : 0}, kept_.size());
      set_.push_back(at->second);
      if (!fresh) continue;
      kept_.emplace_back(), was_.emplace_back();
      for (std::size_t c = 0; c < keep[n].size(); ++c)
        if (keep[n][c] != 0) {
          kept_.back().push_back(c);
          was_.back().push_back(before != nullptr ? before->was(n, static_cast<int>(c)) : static_cast<int>(c));
        }
    }
  }

  /// What is left of a node's choices, as they were called with all of them.
  const std::vector<int>& left(std::size_t node) const { return was_[set_[node]]; }
  /// What a choice of a node was called with all of them.
  int was(std::size_t node, int choice) const { return was_[set_[node]][static_cast<std::size_t>(choice)]; }

  cost_graph of(cost_graph all) const {
    std::map<std::tuple<const void*, std::size_t, std::size_t>, std::pair<shared_table, shared_table>> made;
    const std::size_t no_other = kept_.size();
    const std::vector<std::size_t> sole{0};
    // What was is held, so that nothing else is found in its place.
    const auto fewer = [&](shared_table& t, std::size_t rows, std::size_t columns, std::size_t width) {
      if (t.empty()) return;
      const auto [at, fresh] = made.try_emplace({t.id(), rows, columns}, t, t);
      if (fresh) {
        std::vector<double> times;
        for (const std::size_t a : kept_[rows])
          for (const std::size_t b : columns == no_other ? sole : kept_[columns]) times.push_back(t[a * width + b]);
        at->second.second = std::move(times);
      }
      t = at->second.second;
    };
    for (cost_edge& e : all.edges) {
      const auto a = static_cast<std::size_t>(e.from), b = static_cast<std::size_t>(e.to);
      fewer(e.time, set_[a], set_[b], all.nodes[b].time.size());
    }
    for (std::size_t n = 0; n < all.nodes.size(); ++n) {
      fewer(all.nodes[n].time, set_[n], no_other, 1);
      for (auto* const bytes : {&all.nodes[n].memory, &all.nodes[n].transient}) {
        if (bytes->empty()) continue;
        std::vector<std::int64_t> left;
        for (const std::size_t c : kept_[set_[n]]) left.push_back((*bytes)[c]);
        *bytes = std::move(left);
      }
    }
    return all;
  }

 private:
  std::vector<std::vector<std::size_t>> kept_;  // sets of choices
  std::vector<std::vector<int>> was_;           // of each, with all of them
  std::vector<std::size_t> set_;                // of each node
};

}  // namespace cfp
