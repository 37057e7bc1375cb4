// Parallel blocks: operators that a partition crosses without communication. Found on the forward graph; backward
// operations and updates follow the operators they come from.
#pragma once

#include <cfp/model/wiring.hpp>

#include <boost/graph/connected_components.hpp>

#include <algorithm>
#include <map>
#include <set>
#include <string>

namespace cfp::inline v0_1 {

/// What one strategy decides: the body of a block, or one connected piece beside it.
struct part {
  int block = 0;
  enum kind_t : std::uint8_t {
    body,
    entry,  ///< before the anchor: a norm
    tail,   ///< behind the anchors, from a tensor on that something else reads too
  } kind = body;
  std::vector<int> forward;     ///< operations, ascending
  std::vector<int> operations;  ///< with their gradients, sums and updates, ascending
  std::vector<int> anchors;     ///< contractions that decide its dimensions
};

struct block {
  int body = -1;             ///< part
  std::vector<int> entries;  ///< parts
  std::vector<int> tails;    ///< parts
  std::string label;         ///< its first anchor, "h.0.attn.c_attn.linear"
};

struct block_structure {
  std::vector<block> blocks;  ///< in an order in which they can run
  std::vector<part> parts;
  std::vector<int> part_of;   ///< per operation; -1: a sum or update that belongs to a tensor shared by parts
};

namespace detail {

// Own dimensions of an anchor: groups of result factors. Empty if the operation is no anchor.
inline std::vector<std::vector<int>> own_dimensions(const graph& g, int id) {
  const operation& o = g.at(id);
  const rule& r = o.r;
  if (o.when != phase::forward || r.results.empty() || r.operands.size() < 2) return {};
  bool contracts = false;
  int weight = -1;
  for (int i = 0; i < o.operands.size(); ++i)
    if (weight < 0 && g[o.operands[i]].role == value_role::weight) weight = i;
  for (int f = 0; f < r.factors.size(); ++f) {
    if (!r.is_reduction(f)) continue;
    int holders = r.factors[f].one_hot && weight >= 0;  // the index operand stands for the one-hot factor
    for (const pattern& p : r.operands) holders += p.dim_of(f) >= 0;
    contracts = contracts || (holders > 1 && (o.op->body == op_body::product || r.factors[f].one_hot));
  }
  if (!contracts) return {};
  std::map<int, std::vector<int>> groups;
  const pattern& result = r.results[0];
  for (int d = 0; d < result.factors.size(); ++d) {
    const int f = result.factors[d];
    bool everywhere = true;
    for (const pattern& p : r.operands) everywhere = everywhere && p.dim_of(f) >= 0;
    const bool own = weight >= 0 ? r.operands[weight].dim_of(f) >= 0 : !everywhere;
    if (own) groups[result.group[d]].push_back(f);
  }
  std::vector<std::vector<int>> out;
  for (auto& [group, factors] : groups) out.push_back(factors);
  return out;
}

class block_finder {
 public:
  explicit block_finder(const graph& g) : g_(g), block_of_(g.operations.size(), -1), tag_(g.values.size()) {
    const auto forward = [&](int i) { return g.at(i).when == phase::forward; };
    wires_ = wire(g, forward);
    above_ = ancestors(wires_);
  }

  block_structure run() {
    for (int c : topological_order(wires_)) {
      if (g_.at(c).when != phase::forward) continue;
      if (join(c)) continue;
      if (auto own = own_dimensions(g_, c); !own.empty()) start(c, own);
    }
    return assemble();
  }

 private:
  struct origin_tag {
    int block = -1, group = -1, atom = -1;
  };
  struct growing {
    std::vector<int> members, anchors;
    std::vector<std::set<int>> alive;  // per own dimension, the factors it could still be split by
    boost::dynamic_bitset<> set;
    bool merged = false;
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

  // Siblings must agree on the dimensions they bring: each own dimension of one arrives as a factor that the other's does
  // too. What only one of them could be split by (the depth of values, which scores have not) does not survive.
  static bool agree(std::vector<std::map<int, int>>& first, const std::vector<std::map<int, int>>& other) {
    if (first.size() != other.size()) return false;
    for (auto& group : first) {
      const auto brings = [&](const std::map<int, int>& theirs, int f) {
        return std::any_of(theirs.begin(), theirs.end(), [&](const auto& atom) { return atom.second == f; });
      };
      std::erase_if(group, [&](const auto& atom) {
        return std::none_of(other.begin(), other.end(), [&](const auto& theirs) { return brings(theirs, atom.second); });
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
    a.merged = true;
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

  // Operations no block took: before exactly one block they are its entry; else they are blocks of their own.
  block_structure assemble() {
    const std::size_t n = g_.operations.size();
    std::vector<std::set<int>> used_by(n);
    const std::vector<int> order = topological_order(wires_);
    for (auto at = order.rbegin(); at != order.rend(); ++at) {
      const auto i = static_cast<std::size_t>(*at);
      if (block_of_[i] >= 0 || g_.at(*at).when != phase::forward) continue;
      for (auto [e, end] = boost::out_edges(i, wires_); e != end; ++e) {
        const auto to = boost::target(*e, wires_);
        if (block_of_[to] >= 0) used_by[i].insert(root(block_of_[to]));
        else used_by[i].insert(used_by[to].begin(), used_by[to].end());
      }
    }
    // Connected pieces among unclaimed operations with the same future. A number connects nothing but operations on
    // numbers: no dimension goes through it.
    boost::adjacency_list<boost::vecS, boost::vecS, boost::undirectedS> together(n);
    const auto unclaimed = [&](std::size_t i) {
      return block_of_[i] < 0 && g_.at(static_cast<int>(i)).when == phase::forward;
    };
    const auto future = [&](std::size_t i) { return used_by[i].size() == 1 ? *used_by[i].begin() : -1; };
    for (auto [e, end] = boost::edges(wires_); e != end; ++e) {
      const auto a = boost::source(*e, wires_), b = boost::target(*e, wires_);
      if (unclaimed(a) && unclaimed(b) && used_by[a] == used_by[b] && connected(static_cast<int>(a), static_cast<int>(b))) boost::add_edge(a, b, together);
    }
    std::vector<int> component(n);
    boost::connected_components(together, component.data());

    const std::vector<int> tail = tails();

    block_structure out;
    out.part_of.assign(n, -1);
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
      const int b = root(block_of_[at]);
      const int p = b < 0          ? part_for(future(at), component[at], future(at) >= 0 ? part::entry : part::body)
                    : tail[at] < 0 ? part_for(b, -1, part::body)
                                   : part_for(b, tail[at], part::tail);
      out.part_of[at] = p;
      out.parts[static_cast<std::size_t>(p)].forward.push_back(i);
      if (b >= 0 && tail[at] < 0) out.parts[static_cast<std::size_t>(p)].anchors = sorted(blocks_[static_cast<std::size_t>(b)].anchors);
    }
    follow(out);
    name(out);
    return out;
  }

  // Of operations that no anchor of their block follows, the pieces in which one operation alone reads what another makes,
  // named by one of them; -1: part of the body.
  std::vector<int> tails() const {
    const auto n = g_.operations.size();
    std::vector<bool> leads(n);
    for (const growing& b : blocks_)
      for (int a : b.anchors) leads[static_cast<std::size_t>(a)] = true;
    const auto block_at = [&](int o) { return root(block_of_[static_cast<std::size_t>(o)]); };
    const auto readers = consumers(g_);
    std::vector<int> piece(n), order;
    for (int i : topological_order(wires_))
      if (g_.at(i).when == phase::forward && block_at(i) >= 0) order.push_back(i);
    for (auto at = order.rbegin(); at != order.rend(); ++at)
      for (int v : g_.at(*at).results)
        for (int c : readers[static_cast<std::size_t>(v)])
          if (block_at(c) == block_at(*at) && leads[static_cast<std::size_t>(c)]) leads[static_cast<std::size_t>(*at)] = true;
    for (int i : order) piece[static_cast<std::size_t>(i)] = leads[static_cast<std::size_t>(i)] ? -1 : i;
    for (bool again = true; again;) {
      again = false;
      for (int i : order)
        for (int v : g_.at(i).results) {
          std::set<int> ways;
          for (int c : readers[static_cast<std::size_t>(v)])
            if (g_.at(c).when == phase::forward) ways.insert(block_at(c) == block_at(i) ? piece[static_cast<std::size_t>(c)] : -2 - c);
          const int mine = piece[static_cast<std::size_t>(i)];
          if (ways.size() != 1 || *ways.begin() < 0 || *ways.begin() == mine) continue;
          for (int o : order)
            if (block_at(o) == block_at(i) && piece[static_cast<std::size_t>(o)] == *ways.begin()) piece[static_cast<std::size_t>(o)] = mine;
          again = true;
        }
    }
    return piece;
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
    for (int i = 0; i < g_.size(); ++i) {
      const operation& o = g_.at(i);
      const auto at = static_cast<std::size_t>(i);
      if (o.origin >= 0) out.part_of[at] = out.part_of[static_cast<std::size_t>(o.origin)];
      if (o.hub >= 0) {
        std::set<int> parts;
        for (int c : users[static_cast<std::size_t>(o.hub)])
          if (g_.at(c).when == phase::forward) parts.insert(out.part_of[static_cast<std::size_t>(c)]);
        if (parts.size() == 1) out.part_of[at] = *parts.begin();
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
  std::vector<boost::dynamic_bitset<>> above_;
  std::vector<int> block_of_, merged_into_;
  std::vector<growing> blocks_;
  std::vector<std::vector<origin_tag>> tag_;
};

}  // namespace detail

/// Finds the parallel blocks of a (training) graph.
inline block_structure parallel_blocks(const graph& g) { return detail::block_finder(g).run(); }

}  // namespace cfp
