// Views: what an operator only moves is not moved, where all that reads or writes it can walk memory in other steps.
#pragma once

#include <cfp/program/call.hpp>
#include <cfp/program/fuse.hpp>

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

namespace cfp::inline v0_1 {

namespace detail {

struct viewer {
  using test = bool (*)(const program&, const graph&, const instruction&);

  program& p;
  const graph& g;
  const std::vector<int>& reads;  // of the graph
  test walks;                     // whether an instruction can walk all it reads and writes, as that now lies
  std::unordered_map<std::size_t, std::vector<int>> readers{}, writers{};  // instructions, of roots that may be moved
  std::vector<int> sharing{};                                              // per root: buffers that have it
  std::vector<int> movers{};                                               // instructions
  std::vector<bool> leaves{};  // per value: read by operations that the program does not have

  std::size_t root(int b) const { return static_cast<std::size_t>(p[b].root); }
  void look() {
    const std::vector<int> roots = roots_of(p);
    const auto root_of = [&](int b) { return static_cast<std::size_t>(roots[static_cast<std::size_t>(b)]); };
    sharing.assign(roots.size(), 0);
    for (const int r : roots) ++sharing[static_cast<std::size_t>(r)];
    std::vector<bool> asked(roots.size());
    for (int i = 0; i < static_cast<int>(p.code.size()); ++i) {
      const instruction& c = p.code[static_cast<std::size_t>(i)];
      if (c.kind != instruction::compute || c.nothing || c.fusion >= 0 || !moves(g.at(c.op))) continue;
      movers.push_back(i);
      for (const buffer_numbers* some : {&c.in, &c.out})
        for (const int b : *some) asked[root_of(b)] = true;
    }
    for (int i = 0; i < static_cast<int>(p.code.size()) && !movers.empty(); ++i) {
      for (const int b : p.code[static_cast<std::size_t>(i)].in)
        if (asked[root_of(b)]) readers[root_of(b)].push_back(i);
      for (const int b : p.code[static_cast<std::size_t>(i)].out)
        if (asked[root_of(b)]) writers[root_of(b)].push_back(i);
    }
    leaves = read_elsewhere(p, g, reads);
  }

  // A buffer that may lie elsewhere: nobody but instructions that can walk it has to do with it, `mover` apart.
  bool is_free(int b, int mover) {
    const buffer& x = p[b];
    if (x.persistent || x.is_view() || x.root != b || sharing[root(b)] > 1 ||
        leaves[static_cast<std::size_t>(x.value)] || (p.loss >= 0 && root(p.loss) == root(b)))
      return false;
    return walked(readers[root(b)], mover) && walked(writers[root(b)], mover);
  }

  // What of an operator that only moves is the piece and what the whole: a slice of it, or all in another order.
  static bool moves(const operation& o) {
    if (o.op->body == op_body::stack || o.op->body == op_body::unstack) return true;
    const pattern &from = o.r.operands[0], &to = o.r.results[0];
    return o.op->body == op_body::map && o.op->unit && o.operands.size() == 1 && o.op->index_operand < 0 &&
           from.factors.size() == o.r.factors.size() && to.factors.size() == o.r.factors.size();
  }

  // Lays slice number n of a whole, which `in_whole` walks, where it is in that. False if that cannot be, or if those
  // that walked it cannot walk it there.
  bool lay(int mover, int piece, int whole, const pattern& dims, const pattern& all, const call& c,
           const call_tensor& in_whole, int n) {
    const buffer& w = p[whole];
    if (p[piece].type != w.type || w.is_view() || w.persistent || dims.factors.size() > max_dims ||
        root(piece) == root(whole) || !is_free(piece, mover))
      return false;
    buffer& x = p[piece];
    if (!dims.factors.empty()) {
      x.view = static_cast<int>(p.views.size());
      memory_view& view = p.views.emplace_back();
      for (const signed char f : dims.factors) {
        view.size.push(c.size[f]);
        view.step.push(in_whole.stride[f]);
      }
    }
    for (const signed char f : all.factors)
      if (dims.dim_of(f) < 0) x.first += n * in_whole.stride[f];
    x.root = w.root;
    return walked(readers[static_cast<std::size_t>(piece)], mover) &&
           walked(writers[static_cast<std::size_t>(piece)], mover);
  }
  bool walked(const std::vector<int>& by, int mover) const {
    return std::all_of(by.begin(), by.end(),
                       [&](int i) { return i == mover || walks(p, g, p.code[static_cast<std::size_t>(i)]); });
  }

  void visit(int i) {
    instruction& c = p.code[static_cast<std::size_t>(i)];
    c.nothing = (g.at(c.op).op->body != op_body::stack && lay_all(i, c.out, c.in[0], false)) ||
                (g.at(c.op).op->body != op_body::unstack && lay_all(i, c.in, c.out[0], true));
  }
  // All pieces in the memory of the whole, or none.
  bool lay_all(int i, const buffer_numbers& pieces, int whole, bool operands) {
    const call c = bind_call(p, g, p.code[static_cast<std::size_t>(i)], 0);
    const rule& r = c.r();
    const std::vector<buffer> before = buffers(pieces);
    const std::size_t views = p.views.size();
    for (int n = 0; n < pieces.size(); ++n) {
      if (operands ? lay(i, pieces[n], whole, r.operands[n], r.results[0], c, c.result[0], n)
                   : lay(i, pieces[n], whole, r.results[n], r.operands[0], c, c.operand[0], n))
        continue;
      for (int k = 0; k < pieces.size(); ++k) p[pieces[k]] = before[static_cast<std::size_t>(k)];
      p.views.resize(views);
      return false;
    }
    for (const int b : pieces) follow(static_cast<std::size_t>(b), root(whole));
    return true;
  }
  std::vector<buffer> buffers(const buffer_numbers& of) const {
    std::vector<buffer> out;
    for (const int b : of) out.push_back(p[b]);
    return out;
  }
  // What had to do with a buffer has to do with the whole now.
  void follow(std::size_t piece, std::size_t whole) {
    for (auto* of : {&readers, &writers})
      for (const int i : std::exchange((*of)[piece], {})) (*of)[whole].push_back(i);
    sharing[whole] += std::exchange(sharing[piece], 0);
  }
};

}  // namespace detail

/// Makes what can be one a view. After `fuse` and before memory is planned. `reads`: of the graph.
inline void make_views(program& p, const graph& g, const std::vector<int>& reads,
                       bool (*walks)(const program&, const graph&, const instruction&)) {
  detail::viewer v{p, g, reads, walks};
  v.look();
  for (const int i : v.movers) v.visit(i);
}

}  // namespace cfp
