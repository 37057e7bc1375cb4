// One instruction of a program as a program of its own, to be measured: what it reads is given.
#pragma once

#include <cfp/program/memory.hpp>

namespace cfp::inline v0_1 {

inline program instruction_program(const instruction& i, const program& p) {
  program out;
  out.mesh = p.mesh;
  out.real_bytes = p.real_bytes;
  out.passes = p.passes;
  out.buffers = p.buffers;
  out.views = p.views;
  for (buffer& b : out.buffers) b.persistent = false;
  for (const int b : i.in) out[p[b].root].persistent = true;
  out.code.push_back(i);
  if (i.fusion >= 0) {
    out.fusions.push_back(p.fusions[static_cast<std::size_t>(i.fusion)]);
    out.code[0].fusion = 0;
  }
  out.code[0].beside = false;
  plan_memory(out);
  return out;
}

}  // namespace cfp
