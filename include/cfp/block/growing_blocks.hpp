// Blocks as they grow, operation by operation: an operation joins those whose own dimensions arrive at it, each as one
// parallel factor.
#pragma once

#include <cfp/block/own_dimensions.hpp>
#include <cfp/model/wiring.hpp>

#include <boost/dynamic_bitset.hpp>

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace cfp::inline v0_1::detail {

class growing_blocks {
 public:
  growing_blocks(const graph& g, const wiring& wires)
      : g_(g), above_(ancestors(wires)), block_of_(g.operations.size(), -1), tag_(g.values.size()) {}

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

 private:
  struct origin_tag {
    int block = -1, group = -1, atom = -1;
  };
  struct growing {
    std::vector<int> members, anchors;
    std::vector<std::set<int>> alive;  // per own dimension, the factors it could still be split by
    boost::dynamic_bitset<> set;
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
      const growing& grown = blocks_[static_cast<std::size_t>(b)];
      bool convex = true;
      for (int v : o.operands)
        if (const int p = g_[v].producer; p >= 0 && !grown.set.test(static_cast<std::size_t>(p)))
          convex = convex && !above_[static_cast<std::size_t>(p)].intersects(grown.set);
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
    grown.set.set(static_cast<std::size_t>(c));
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
    b.set |= a.set;
    for (int m : a.members) block_of_[static_cast<std::size_t>(m)] = into;
  }

  void start(int c, const std::vector<std::vector<int>>& own) {
    const int b = static_cast<int>(blocks_.size());
    growing grown;
    grown.members = {c};
    grown.anchors = {c};
    grown.set.resize(g_.operations.size());
    grown.set.set(static_cast<std::size_t>(c));
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
  std::vector<boost::dynamic_bitset<>> above_;
  std::vector<int> block_of_, merged_into_;
  std::vector<growing> blocks_;
  std::vector<std::vector<origin_tag>> tag_;
};

}  // namespace cfp::detail
