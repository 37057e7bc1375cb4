// Blocks as they grow, operation by operation: an operation joins those whose own dimensions arrive at it, each as one
// parallel factor.
#pragma once

#include <cfp/block/own_dimensions.hpp>
#include <cfp/model/wiring.hpp>

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

namespace cfp::inline v0_1::detail {

class growing_blocks {
 public:
  growing_blocks(const graph& g, const wiring& wires)
      : g_(g), wires_(wires), place_(g.operations.size()), block_of_(g.operations.size(), -1), tag_(g.values.size()) {
    int place = 0;
    for (const int o : topological_order(wires)) place_[static_cast<std::size_t>(o)] = place++;
  }

  /// Takes an operation into the blocks that reach it, which become one; or lets an anchor begin a block.
  void add(int c) {
    if (join(c)) return;
    if (auto own = own_dimensions(g_, c); !own.empty()) start(c, own);
  }

  /// The block of an operation; -1: none took it.
  int of(int o) const { return root(block_of_[static_cast<std::size_t>(o)]); }
  std::size_t size() const { return blocks_.size(); }
  /// Of a block that grew, not sorted.
  const std::vector<int>& anchors(int b) const { return blocks_[static_cast<std::size_t>(b)].anchors; }

  /// Whether an operation outside of block b depends on a member of it. What stands before all members does not, and
  /// what was found out stays so: a member that is added later stands behind all that was added before.
  bool follows(int o, int b) {
    growing& grown = blocks_[static_cast<std::size_t>(b)];
    using in_edges = decltype(boost::in_edges(0, wires_));
    std::vector<std::pair<int, in_edges>> way;  // up from o
    const auto enter = [&](int at) { way.emplace_back(at, boost::in_edges(static_cast<std::size_t>(at), wires_)); };
    enter(o);
    while (!way.empty()) {
      auto& [at, edges] = way.back();
      const auto known = grown.followers.find(at);
      bool found = known != grown.followers.end() && known->second;
      if (known != grown.followers.end() && !known->second) edges.first = edges.second;
      int next = -1;
      for (; !found && next < 0 && edges.first != edges.second; ++edges.first) {
        const auto from = static_cast<int>(boost::source(*edges.first, wires_));
        found = of(from) == b;
        if (place_[static_cast<std::size_t>(from)] > grown.first) next = from;
      }
      if (found) {
        for (const auto& [between, rest] : way) grown.followers[between] = true;
        return true;
      }
      if (next >= 0) {
        enter(next);
      } else {
        grown.followers[at] = false;
        way.pop_back();
      }
    }
    return false;
  }

 private:
  struct origin_tag {
    int block = -1, group = -1, atom = -1;
  };
  struct growing {
    std::vector<int> members, anchors;
    std::vector<std::set<int>> alive;           // per own dimension, the factors it could still be split by
    int first = 0;                              // the lowest place of a member
    std::unordered_map<int, bool> followers{};  // of some operations outside: whether they depend on a member
  };

  // Does block b arrive at c with every own dimension as exactly one parallel factor? Returns per own dimension the
  // surviving atoms and the factors they arrive as.
  bool arrives(int b, int c, std::vector<std::map<int, int>>& as) const {
    const growing& grown = blocks_[static_cast<std::size_t>(b)];
    const operation& o = g_.at(c);
    as.assign(grown.alive.size(), {});
    for (std::size_t group = 0; group < grown.alive.size(); ++group) {
      for (int atom : grown.alive[group]) {
        std::set<int> factors;
        for (int i = 0; i < o.operands.size(); ++i) {
          const auto& tags = tag_[static_cast<std::size_t>(o.operands[i])];
          for (std::size_t d = 0; d < tags.size(); ++d)
            if (root(tags[d].block) == b && tags[d].group == static_cast<int>(group) && tags[d].atom == atom)
              factors.insert(o.r.operands[i].factors[static_cast<int>(d)]);
        }
        if (factors.size() == 1 && o.r.is_parallel(*factors.begin())) as[group][atom] = *factors.begin();
      }
      if (as[group].empty()) return false;
    }
    return true;
  }

  // Siblings must agree on the dimensions they bring: each own dimension of one arrives as a factor that the other's
  // does too. What only one of them could be split by (the depth of values, which scores have not) does not survive.
  static bool agree(std::vector<std::map<int, int>>& first, const std::vector<std::map<int, int>>& other) {
    if (first.size() != other.size()) return false;
    for (auto& group : first) {
      const auto brings = [&](const std::map<int, int>& theirs, int f) {
        return std::any_of(theirs.begin(), theirs.end(), [&](const auto& atom) { return atom.second == f; });
      };
      std::erase_if(group, [&](const auto& atom) {
        return std::none_of(other.begin(), other.end(),
                            [&](const auto& theirs) { return brings(theirs, atom.second); });
      });
      if (group.empty()) return false;
    }
    return true;
  }

  int root(int b) const {
    while (b >= 0 && merged_into_[static_cast<std::size_t>(b)] >= 0) b = merged_into_[static_cast<std::size_t>(b)];
    return b;
  }

  bool join(int c) {
    const operation& o = g_.at(c);
    std::set<int> feeding;
    for (int v : o.operands)
      if (const int p = g_[v].producer; p >= 0 && block_of_[static_cast<std::size_t>(p)] >= 0)
        feeding.insert(root(block_of_[static_cast<std::size_t>(p)]));
    std::vector<int> candidates;
    for (int b : feeding) {  // convex: nothing outside the block lies between it and c
      bool convex = true;
      for (int v : o.operands)
        if (const int p = g_[v].producer; p >= 0 && of(p) != b) convex = convex && !follows(p, b);
      if (convex) candidates.push_back(b);
    }
    if (candidates.empty()) return false;
    std::vector<std::vector<std::map<int, int>>> as(candidates.size());
    for (std::size_t k = 0; k < candidates.size(); ++k)
      if (!arrives(candidates[k], c, as[k]) || !agree(as[0], as[k])) return false;
    const int into = candidates[0];
    for (std::size_t k = 1; k < candidates.size(); ++k) merge(candidates[k], into);
    growing& grown = blocks_[static_cast<std::size_t>(into)];
    grown.members.push_back(c);
    block_of_[static_cast<std::size_t>(c)] = into;
    if (!own_dimensions(g_, c).empty()) grown.anchors.push_back(c);
    std::map<int, origin_tag> by_factor;
    for (std::size_t group = 0; group < as[0].size(); ++group) {
      grown.alive[group].clear();
      for (const auto& [atom, f] : as[0][group]) {
        grown.alive[group].insert(atom);
        by_factor[f] = {into, static_cast<int>(group), atom};
      }
    }
    label_results(c, by_factor);
    return true;
  }

  void merge(int from, int into) {
    growing& a = blocks_[static_cast<std::size_t>(from)];
    growing& b = blocks_[static_cast<std::size_t>(into)];
    merged_into_[static_cast<std::size_t>(from)] = into;
    b.members.insert(b.members.end(), a.members.begin(), a.members.end());
    b.anchors.insert(b.anchors.end(), a.anchors.begin(), a.anchors.end());
    b.first = std::min(a.first, b.first);
    std::erase_if(b.followers, [](const auto& known) { return !known.second; });
    for (const auto& [o, follows_it] : a.followers)
      if (follows_it) b.followers[o] = true;
    for (int m : a.members) block_of_[static_cast<std::size_t>(m)] = into;
    a = {};
  }

  void start(int c, const std::vector<std::vector<int>>& own) {
    const int b = static_cast<int>(blocks_.size());
    growing grown;
    grown.members = {c};
    grown.anchors = {c};
    grown.first = place_[static_cast<std::size_t>(c)];
    std::map<int, origin_tag> by_factor;
    for (std::size_t group = 0; group < own.size(); ++group) {
      grown.alive.emplace_back();
      for (std::size_t atom = 0; atom < own[group].size(); ++atom) {
        grown.alive.back().insert(static_cast<int>(atom));
        by_factor[own[group][atom]] = {b, static_cast<int>(group), static_cast<int>(atom)};
      }
    }
    blocks_.push_back(std::move(grown));
    merged_into_.push_back(-1);
    block_of_[static_cast<std::size_t>(c)] = b;
    label_results(c, by_factor);
  }

  void label_results(int c, const std::map<int, origin_tag>& by_factor) {
    const operation& o = g_.at(c);
    for (int k = 0; k < o.results.size(); ++k) {
      auto& tags = tag_[static_cast<std::size_t>(o.results[k])];
      for (signed char f : o.r.results[k].factors) {
        const auto at = by_factor.find(f);
        tags.push_back(at == by_factor.end() ? origin_tag{} : at->second);
      }
    }
  }

  const graph& g_;
  const wiring& wires_;
  std::vector<int> place_;  // of an operation: in an order in which they can run
  std::vector<int> block_of_, merged_into_;
  std::vector<growing> blocks_;
  std::vector<std::vector<origin_tag>> tag_;
};

}  // namespace cfp::detail
