// One operator on one rank: sizes, strides and pointers, all that a kernel needs to know.
#pragma once

#include <cfp/program/program.hpp>

namespace cfp::inline v0_1 {

/// An operand or result: its memory, and how far a step along each factor moves in it (0 where it lacks the factor).
struct call_tensor {
  void* data = nullptr;
  bool wide = false;             ///< numbers are of 32 bits at least
  element lean = element::real;  ///< of optimizer state: its form, where that is a lean one
  long stride[max_factors] = {};
};

struct call {
  const operation* op = nullptr;
  int factors = 0;
  long size[max_factors] = {};     ///< of the local piece
  long start[max_factors] = {};    ///< global index of its first element
  long step_of[max_factors] = {};  ///< by how much the position that a factor is (a part of) grows along it
  call_tensor operand[max_operands], result[max_results];
  long step = 0;             ///< optimizer step, from 1
  int pass = 0, passes = 1;  ///< micro-batch of the step, from 0, and how many it has
  bool first = true;         ///< sums over micro-batches begin with it
  std::uint64_t seed = 0;    ///< of the run
  int forward = -1;          ///< number of the operation, or of the forward operation it is a gradient of

  const rule& r() const { return op->r; }
  /// Of positions, whose parts follow one another.
  void find_steps() {
    for (int f = 0; f < factors; ++f) {
      step_of[f] = 1;
      for (int minor = f + 1; r().coordinate_of(f) >= 0 && minor < factors; ++minor)
        if (r().factors[minor].part_of == r().coordinate_of(f)) step_of[f] *= op->sizes[minor];
    }
  }
};

/// Sizes and strides of a compute instruction on one device; data pointers are filled in by the executor.
inline call bind_call(const program& p, const graph& g, const instruction& i, int device) {
  call c;
  c.op = &g.at(i.op);
  c.forward = c.op->origin >= 0 ? c.op->origin : i.op;
  if (const int slice_of = g.at(c.forward).slice_of; slice_of >= 0) c.forward = slice_of;
  const rule& r = c.op->r;
  c.factors = r.factors.size();
  for (int f = 0; f < c.factors; ++f) {
    long pieces = 1, piece = 0;
    for (int a = 0; a < p.mesh.rank(); ++a)
      if (i.assigned.factor[a] == f) {
        pieces *= p.mesh.size(a);
        piece = piece * p.mesh.size(a) + p.mesh.coordinate(device, a);
      }
    c.size[f] = c.op->sizes[f] / pieces;
    c.start[f] = c.op->first_of(f) + piece * c.size[f];
  }
  c.find_steps();
  const auto bind = [&](call_tensor& t, const pattern& pat, const buffer& b) {
    long step = 1;
    for (int d = pat.factors.size() - 1; d >= 0; --d) {
      const int f = pat.factors[d];
      t.stride[f] = b.is_view() ? p.views[static_cast<std::size_t>(b.view)].step_of(step, c.size[f]) : step;
      step *= c.size[f];
    }
    t.wide = b.type == element::wide;
    if (is_lean(b.type)) t.lean = b.type;
  };
  for (int k = 0; k < r.operands.size(); ++k) bind(c.operand[k], r.operands[k], p[i.in[k]]);
  for (int k = 0; k < r.results.size(); ++k) bind(c.result[k], r.results[k], p[i.out[k]]);
  return c;
}

}  // namespace cfp
