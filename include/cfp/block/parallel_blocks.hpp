// Parallel blocks: operators that a partition crosses without communication. Found on the forward graph; backward
// operations and updates follow the operators they come from.
#pragma once

#include <cfp/block/block_structure.hpp>
#include <cfp/block/block_tails.hpp>
#include <cfp/block/growing_blocks.hpp>
#include <cfp/block/own_dimensions.hpp>
#include <cfp/model/wiring.hpp>

#include <boost/graph/connected_components.hpp>

#include <algorithm>
#include <map>
#include <set>
#include <string>

namespace cfp::inline v0_1 {

namespace detail {

class block_finder {
 public:
  explicit block_finder(const graph& g)
      : g_(g), wires_(wire(g, [&](int i) { return g.at(i).when == phase::forward; })), grown_(g, wires_) {}

  block_structure run() {
    for (int c : topological_order(wires_))
      if (g_.at(c).when == phase::forward) grown_.add(c);
    return assemble();
  }

 private:
  // Operations no block took: before exactly one block they are its entry; else they are blocks of their own.
  block_structure assemble() {
    const std::vector<std::set<int>> used_by = futures();
    const std::vector<int> component = pieces(used_by), tail = block_tails(g_, wires_, grown_);
    const auto future = [&](std::size_t i) { return used_by[i].size() == 1 ? *used_by[i].begin() : -1; };
    block_structure out;
    out.part_of.assign(g_.operations.size(), -1);
    std::map<std::pair<int, int>, int> made;  // (block, component or -1) -> part
    std::map<int, int> block_id;
    const auto part_for = [&](int key_block, int key_component, part::kind_t kind) {
      auto [at, fresh] = made.try_emplace({key_block, key_component}, static_cast<int>(out.parts.size()));
      if (fresh) {
        out.parts.emplace_back();
        out.parts.back().kind = kind;
        const int owner = key_block >= 0 ? key_block : -2 - key_component;
        auto [b, fresh_block] = block_id.try_emplace(owner, static_cast<int>(out.blocks.size()));
        if (fresh_block) out.blocks.emplace_back();
        out.parts.back().block = b->second;
        block& owning = out.blocks[static_cast<std::size_t>(b->second)];
        if (kind == part::body) owning.body = at->second;
        else (kind == part::entry ? owning.entries : owning.tails).push_back(at->second);
      }
      return at->second;
    };
    for (int i = 0; i < g_.size(); ++i) {
      if (g_.at(i).when != phase::forward) continue;
      const auto at = static_cast<std::size_t>(i);
      const int b = grown_.of(i);
      const int p = b < 0          ? part_for(future(at), component[at], future(at) >= 0 ? part::entry : part::body)
                    : tail[at] < 0 ? part_for(b, -1, part::body)
                                   : part_for(b, tail[at], part::tail);
      out.part_of[at] = p;
      out.parts[static_cast<std::size_t>(p)].forward.push_back(i);
      if (b >= 0 && tail[at] < 0) out.parts[static_cast<std::size_t>(p)].anchors = sorted(grown_.anchors(b));
    }
    follow(out);
    name(out);
    return out;
  }

  // Per operation no block took, the blocks that come after it.
  std::vector<std::set<int>> futures() const {
    std::vector<std::set<int>> used_by(g_.operations.size());
    const std::vector<int> order = topological_order(wires_);
    for (auto at = order.rbegin(); at != order.rend(); ++at) {
      const auto i = static_cast<std::size_t>(*at);
      if (grown_.of(*at) >= 0 || g_.at(*at).when != phase::forward) continue;
      for (auto [e, end] = boost::out_edges(i, wires_); e != end; ++e) {
        const auto to = boost::target(*e, wires_);
        if (const int b = grown_.of(static_cast<int>(to)); b >= 0) used_by[i].insert(b);
        else used_by[i].insert(used_by[to].begin(), used_by[to].end());
      }
    }
    return used_by;
  }

  // Connected pieces among unclaimed operations with the same future. A number connects nothing but operations on
  // numbers: no dimension goes through it.
  std::vector<int> pieces(const std::vector<std::set<int>>& used_by) const {
    const std::size_t n = g_.operations.size();
    boost::adjacency_list<boost::vecS, boost::vecS, boost::undirectedS> together(n);
    const auto unclaimed = [&](std::size_t i) {
      return grown_.of(static_cast<int>(i)) < 0 && g_.at(static_cast<int>(i)).when == phase::forward;
    };
    for (auto [e, end] = boost::edges(wires_); e != end; ++e) {
      const auto a = boost::source(*e, wires_), b = boost::target(*e, wires_);
      if (unclaimed(a) && unclaimed(b) && used_by[a] == used_by[b] &&
          connected(static_cast<int>(a), static_cast<int>(b)))
        boost::add_edge(a, b, together);
    }
    std::vector<int> component(n);
    boost::connected_components(together, component.data());
    return component;
  }

  bool connected(int producer, int consumer) const {
    const auto numbers = [&](int o) { return g_.at(o).r.factors.empty(); };
    if (numbers(producer) && numbers(consumer)) return true;
    for (int v : g_.at(consumer).operands)
      if (g_[v].producer == producer && g_[v].rank() > 0) return true;
    return false;
  }

  static std::vector<int> sorted(std::vector<int> v) {
    std::sort(v.begin(), v.end());
    return v;
  }

  // Gradients go with their operator; sums and updates with the one part that uses the tensor.
  void follow(block_structure& out) const {
    const auto users = consumers(g_);
    std::map<int, int> part_of_hub;  // -1: of several
    for (int i = 0; i < g_.size(); ++i) {
      const operation& o = g_.at(i);
      const auto at = static_cast<std::size_t>(i);
      if (o.origin >= 0) out.part_of[at] = out.part_of[static_cast<std::size_t>(o.origin)];
      if (o.hub >= 0) {
        const auto [one, fresh] = part_of_hub.try_emplace(o.hub, -1);
        if (fresh) {
          std::set<int> parts;
          for (int c : users[static_cast<std::size_t>(o.hub)])
            if (g_.at(c).when == phase::forward) parts.insert(out.part_of[static_cast<std::size_t>(c)]);
          if (parts.size() == 1) one->second = *parts.begin();
        }
        if (one->second >= 0) out.part_of[at] = one->second;
      }
      if (out.part_of[at] >= 0) out.parts[static_cast<std::size_t>(out.part_of[at])].operations.push_back(i);
    }
  }

  void name(block_structure& out) const {
    for (block& b : out.blocks) {
      const part& body = out.parts[static_cast<std::size_t>(b.body)];
      const int first = body.anchors.empty() ? body.forward.front() : body.anchors.front();
      b.label = std::string(g_[g_.at(first).results[0]].label.view());
    }
  }

  const graph& g_;
  wiring wires_;
  growing_blocks grown_;
};

}  // namespace detail

/// Finds the parallel blocks of a (training) graph.
inline block_structure parallel_blocks(const graph& g) { return detail::block_finder(g).run(); }

}  // namespace cfp
