// A program's memory on one rank, as instructions are made ready for it: where each buffer is, and what a call is bound
// to.
#pragma once

#include <cfp/program/call.hpp>

#include <functional>
#include <vector>

namespace cfp::inline v0_1 {

/// An instruction that computes, made ready on a device: what is put into a queue, over and over.
template <class Queue>
struct ready {
  std::function<void(const Queue&)> run{};
  long workspace = 0;  ///< bytes that must be free while it runs
};

struct places {
  const program& p;
  const graph& g;
  int rank = 0;
  std::uint64_t seed = 0;
  const std::vector<void*>& at;  ///< per buffer
  void* const& workspace;        ///< once all instructions are ready; the most bytes that any has asked for

  void* operator[](int b) const { return at[static_cast<std::size_t>(b)]; }

  /// The call of an instruction, its pointers set.
  call bound(const instruction& i) const {
    call c = bind_call(p, g, i, rank);
    c.passes = p.passes;
    c.seed = seed;
    for (int o = 0; o < i.in.size(); ++o) c.operand[o].data = (*this)[i.in[o]];
    for (int o = 0; o < i.out.size(); ++o) c.result[o].data = (*this)[i.out[o]];
    return c;
  }
};

}  // namespace cfp
