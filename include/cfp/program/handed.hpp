// Scans: what they hand on, from position to position and, where an axis splits what is scanned, from rank to rank.
#pragma once

#include <cfp/program/around.hpp>
#include <cfp/program/program.hpp>

#include <algorithm>

namespace cfp::inline v0_1 {

/// What an instruction that hands on walks on one device.
struct handed {
  handing how;
  around rows;     ///< of the first operand, around what is scanned
  long per = 0;    ///< neighbours that share a number of the second operand; 0: there is none
  long slice = 1;  ///< of `rows.outer`: what goes to the next rank at a time, so that ranks work at the same time
  int axis = -1;   ///< along which ranks hand on, or -1
  int mine = 0, ranks = 1;

  constexpr long edge() const { return rows.outer * rows.inner; }  ///< elements at a border
  constexpr long slices() const { return rows.outer / slice; }
  /// The rank that gets what this one leaves, and the one whose it gets; -1: there is none.
  constexpr int next() const { return neighbour(how.step); }
  constexpr int previous() const { return neighbour(-how.step); }
  /// The position that is the k-th to be come to.
  constexpr long position(long k) const { return how.step > 0 ? k : rows.extent - 1 - k; }
  constexpr collective_kind collective() const { return how.sums ? collective_kind::all_scan : collective_kind::shift; }

 private:
  constexpr int neighbour(int step) const {
    const int to = mine + step;
    return ranks == 1 ? -1 : how.around ? (to + ranks) % ranks : to < ranks ? to : -1;
  }
};

/// Rows of a border that go at a time: of at least 64 KiB, in up to 8 slices. The more slices, the less the last rank
/// waits for the first, and the more calls there are.
constexpr long slice_of_border(long outer, long bytes) {
  long slices = 8;
  while (slices > 1 && (outer % slices != 0 || bytes / slices < (64 << 10))) slices /= 2;
  return outer / slices;
}

constexpr handed handed_by(const program& p, const graph& g, const instruction& i, int device = 0) {
  const operation& o = g.at(i.op);
  const buffer& x = p[i.in[0]];
  handed out;
  out.how = o.op->hands;
  out.rows = view_around(x.local, o.r.operands[0].dim_of(o.r.scanned()));
  out.axis = i.with;
  if (i.with >= 0) out.mine = p.mesh.coordinate(device, i.with), out.ranks = static_cast<int>(p.mesh.size(i.with));
  if (i.in.size() > 1)
    out.per = out.rows.inner / view_around(p[i.in[1]].local, o.r.operands[1].dim_of(o.r.scanned())).inner;
  const long all = elements(x.local);
  out.slice =
      out.how.sums && out.axis >= 0 ? slice_of_border(out.rows.outer, out.edge() * (x.bytes / all)) : out.rows.outer;
  return out;
}

/// Bytes of a border.
constexpr long handed_bytes(const program& p, const graph& g, const instruction& i) {
  const buffer& x = p[i.in[0]];
  return x.bytes / handed_by(p, g, i).rows.extent;
}

constexpr collective_kind collective_of(const instruction& i, const graph& g) {
  return i.kind != instruction::hand ? i.step.collective()
         : g.at(i.op).op->hands.sums ? collective_kind::all_scan
                                     : collective_kind::shift;
}

/// Makes of the instruction of an operator one that hands on; `allocate(bytes)` gives its memory for borders.
template <class Allocate>
constexpr void make_handing(program& p, instruction& i, const operation& o, const Allocate& allocate) {
  const int scanned = o.r.scanned();
  i.kind = instruction::hand;
  for (int a = 0; a < p.mesh.rank(); ++a)
    if (i.assigned.factor[a] == scanned) i.with = a, i.step.axis = static_cast<signed char>(a);
  const buffer& x = p[i.in[0]];
  const long border = x.bytes / x.local[o.r.operands[0].dim_of(scanned)];
  for (int k = 0; k < (o.op->hands.sums ? 1 : 2); ++k) i.out.push(allocate(border));
}

}  // namespace cfp
