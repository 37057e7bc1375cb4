// What the parts of a graph can compute again for backward, or have brought from the host, in the place of keeping it.
#pragma once

#include <cfp/block/block_structure.hpp>
#include <cfp/block/keeping.hpp>
#include <cfp/block/own_dimensions.hpp>
#include <cfp/block/segments.hpp>
#include <cfp/model/saved_values.hpp>

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace cfp::inline v0_1 {

/// A tensor that goes from one part to another of the same segment, whose backward alone reads it beside the part that
/// computes it: that reader may not keep it.
struct remade_tensor {
  int value = -1;
  int from = 0, to = 0;    ///< parts
  std::vector<int> unit;   ///< operations of that part that compute it, or what is only rearranged to it, together
  std::vector<int> chain;  ///< those that make it of what backward has there, ascending; none if that has it itself
  bool cheap = true;       ///< no contraction is among them
};

/// A tensor of another segment that backward of one other part alone reads: it may rest on the host for that.
struct border_tensor {
  int value = -1;
  int from = 0, to = 0;  ///< parts
};

/// What a part can leave out of what it computes, by how much it keeps of that.
struct recomputed_parts {
  struct level {
    keeping::inside_t inside = keeping::all;
    std::vector<int> operations{};  ///< ascending: whose results are not kept
    std::vector<int> on_host{};     ///< the same of those whose results rest there
  };
  std::vector<level> levels;  ///< that differ, but `all`; those that put nothing on the host first
  std::vector<int> inputs;    ///< values that it reads and that others may compute again for it
  std::vector<int> borders;   ///< the same of those that may rest on the host for it
};

/// Of a training graph, on a target by what it saves.
struct recomputation {
  recomputation(const graph& g, const block_structure& s, const segmentation& found, const saved_values& saved);

  std::vector<recomputed_parts> parts;  ///< of each
  std::vector<remade_tensor> remade;
  std::vector<border_tensor> borders;
};

namespace detail {

class recomputation_finder {
 public:
  recomputation_finder(const graph& g, const block_structure& s, const segmentation& found, const saved_values& saved,
                       recomputation& out)
      : g_(g), s_(s), saved_(saved), readers_(consumers(g)), out_(out) {
    out_.parts.resize(s.parts.size());
    std::vector<int> of_block(s.blocks.size(), -1);
    for (std::size_t i = 0; i < found.segments.size(); ++i)
      for (int b = 0; b < found.segments[i].count; ++b) of_block[at(found.segments[i].first + b)] = static_cast<int>(i);
    for (const part& p : s.parts) segment_.push_back(of_block[at(p.block)]);
    for (std::size_t p = 0; p < s.parts.size(); ++p) find(static_cast<int>(p));
  }

 private:
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }

  // Where experts are chosen, say: computed once more by other kernels, which round otherwise, it might choose others.
  static bool chooses(const operation& o) { return o.op->body == op_body::routine && o.op->linear != linearity::all; }

  // What becomes of the results of a unit, as far as they are saved.
  struct uses {
    bool inside = false;   // backward of its own part reads some
    bool leaving = false;  // one reader elsewhere, which may have it made again, reads some, or what only rearranges it
    bool kept = false;     // some must be kept
  };

  void find(int p) {
    const part& mine = s_.parts[at(p)];
    std::map<int, std::vector<int>> units;
    std::map<int, uses> of_unit;
    for (const int o : mine.forward) {
      const int unit = saved_.unit[at(o)];
      units[unit].push_back(o);
      if (chooses(g_.at(o)) || (g_.at(o).op->statistic && unit == o)) of_unit[unit].kept = true;
      for (const int v : g_.at(o).results) add_uses(of_unit, v, p);
    }
    const auto level = [&](keeping::inside_t inside, const auto& leaves_out) {
      recomputed_parts::level out{inside};
      bool any = false;
      for (const auto& [unit, operations] : units) {
        const uses& u = of_unit[unit];
        const bool saves = u.inside || u.leaving || u.kept;
        if (saves ? !leaves_out(operations, u) : leaves_segment(operations)) continue;
        any = any || (saves && u.inside);
        out.operations.insert(out.operations.end(), operations.begin(), operations.end());
      }
      std::sort(out.operations.begin(), out.operations.end());
      std::vector<recomputed_parts::level>& levels = out_.parts[at(p)].levels;
      if (any && (levels.empty() || levels.back().operations != out.operations)) levels.push_back(std::move(out));
    };
    const auto stays = [](const uses& u) { return u.inside && !u.leaving && !u.kept; };
    level(keeping::costly, [&](const std::vector<int>& some, const uses& u) { return stays(u) && is_cheap(some); });
    level(keeping::leaving, [&](const std::vector<int>&, const uses& u) { return stays(u); });
    level(keeping::nothing, [&](const std::vector<int>&, const uses& u) { return u.inside && !u.kept; });
    add_on_host(mine);
  }

  // What is cheap computed again, and all else that backward of the part itself reads on the host: but what one kernel
  // leaves to itself, and what is less than a matrix.
  void add_on_host(const part& mine) {
    std::vector<recomputed_parts::level>& levels = out_.parts[at(s_.part_of[at(mine.forward.front())])].levels;
    recomputed_parts::level out{keeping::on_host};
    if (!levels.empty() && levels.front().inside == keeping::costly) out.operations = levels.front().operations;
    for (const int o : mine.forward)
      if (!std::binary_search(out.operations.begin(), out.operations.end(), o) && rests_well(o) &&
          read_back_by(g_.at(o).results[0]).count(s_.part_of[at(o)]) > 0)
        out.on_host.push_back(o);
    if (!out.on_host.empty()) levels.push_back(std::move(out));
  }
  bool rests_well(int o) const {
    const operation& made = g_.at(o);
    return !made.op->statistic && made.results.size() == 1 && g_[made.results[0]].rank() > 1 &&
           g_[made.results[0]].type == element::real;
  }

  // Parts whose backward reads a value; -1: sums and updates that belong to no part.
  std::set<int> read_back_by(int v) const {
    std::set<int> out;
    for (const int o : saved_.readers[at(v)]) out.insert(s_.part_of[at(o)]);
    return out;
  }

  void add_uses(std::map<int, uses>& of_unit, int v, int p) {
    std::set<int> by = read_back_by(v);
    const bool own = by.erase(p) > 0;
    uses& mine = of_unit[saved_.unit[at(g_[v].producer)]];
    mine.inside = mine.inside || own;
    if (by.empty()) return;
    const int to = *by.begin();
    if (chooses(g_.at(g_[v].producer)) || by.size() > 1 || to < 0 || segment_[at(to)] != segment_[at(p)] ||
        g_[v].rank() == 0) {
      mine.kept = true;
      if (by.size() == 1 && to >= 0 && !own && rests_well(g_[v].producer)) {
        out_.parts[at(to)].borders.push_back(v);
        out_.borders.push_back({v, p, to});
      }
      return;
    }
    out_.parts[at(to)].inputs.push_back(v);
    const std::vector<int> from = units_of(v, p);
    for (const int unit : from) of_unit[unit].leaving = true;
    remade_tensor made{v, p, to, {}, own ? std::vector<int>() : chain_of(v, p)};
    for (const int o : made.chain) made.cheap = made.cheap && !contracts(o);
    for (const int o : s_.parts[at(p)].forward)
      if (std::find(from.begin(), from.end(), saved_.unit[at(o)]) != from.end()) made.unit.push_back(o);
    out_.remade.push_back(std::move(made));
  }

  // That of what computes a value; where that only rearranges what another of the part computes, that one's too.
  std::vector<int> units_of(int v, int p) const {
    std::vector<int> out;
    for (int o = g_[v].producer; o >= 0 && s_.part_of[at(o)] == p; o = g_[g_.at(o).operands[0]].producer) {
      out.push_back(saved_.unit[at(o)]);
      if (!only_moves(g_.at(o))) break;
    }
    return out;
  }

  // What computes a value of what backward of the part has anyway, and of what comes from outside.
  std::vector<int> chain_of(int v, int p) const {
    std::set<int> out;
    std::vector<int> open{v};
    while (!open.empty()) {
      const int o = g_[open.back()].producer;
      open.pop_back();
      if (o < 0 || s_.part_of[at(o)] != p || chooses(g_.at(o)) || !out.insert(o).second) continue;
      for (const int x : g_.at(o).operands)
        if (read_back_by(x).count(p) == 0) open.push_back(x);
    }
    return {out.begin(), out.end()};
  }

  static bool only_moves(const operation& o) {
    bool all = o.op->body == op_body::map && o.op->unit && o.op->linear == linearity::all && o.operands.size() == 1;
    for (int f = 0; f < o.r.factors.size(); ++f) all = all && !o.r.is_reduction(f);
    return all;
  }

  bool contracts(int o) const { return !own_dimensions(g_, o).empty() || g_.at(o).op->body == op_body::product; }

  // Whether operations and what they take, down to what is kept anyway, are no contractions.
  bool is_cheap(const std::vector<int>& operations) const {
    std::set<int> seen(operations.begin(), operations.end());
    std::vector<int> open(operations);
    while (!open.empty()) {
      const int o = open.back();
      open.pop_back();
      if (contracts(o)) return false;
      for (const int v : g_.at(o).operands)
        if (const int from = g_[v].producer; from >= 0 && saved_.readers[at(v)].empty() &&
                                             s_.part_of[at(from)] == s_.part_of[at(o)] && seen.insert(from).second)
          open.push_back(from);
    }
    return true;
  }

  // Whether another segment reads a result: it is not computed again only because nobody here keeps it.
  bool leaves_segment(const std::vector<int>& operations) const {
    for (const int o : operations)
      for (const int v : g_.at(o).results)
        for (const int reader : readers_[at(v)])
          if (const int by = s_.part_of[at(reader)];
              g_.at(reader).when == phase::forward && by >= 0 && segment_[at(by)] != segment_[at(s_.part_of[at(o)])])
            return true;
    return false;
  }

  const graph& g_;
  const block_structure& s_;
  const saved_values& saved_;
  const std::vector<std::vector<int>> readers_;
  std::vector<int> segment_;  // of parts
  recomputation& out_;
};

}  // namespace detail

inline recomputation::recomputation(const graph& g, const block_structure& s, const segmentation& found,
                                    const saved_values& saved) {
  detail::recomputation_finder(g, s, found, saved, *this);
}

}  // namespace cfp
