// The memory a program needs, as a choice of a decision is priced by it.
#pragma once

#include <cfp/program/program.hpp>

#include <cstddef>
#include <vector>

namespace cfp::inline v0_1 {

/// Bytes a program keeps (weights, optimizer state, activations saved for backward) and bytes beyond them at its peak.
struct program_memory {
  long kept = 0, transient = 0;
};

/// Of a part lowered alone, what it is given counts as well: activations its backward operations read are kept in the
/// form it reads them, all else it is given is there while it runs. Gradients that are measured before they are used
/// wait for those of all other parts.
inline program_memory memory_of(const program& p, const graph& g) {
  std::vector<bool> forward(p.buffers.size()), saved(p.buffers.size());
  for (const instruction& i : p.code)
    if (i.kind == instruction::compute && g.at(i.op).when == phase::update && g.at(i.op).op->body != op_body::update)
      for (const instruction& part : p.parts(i))
        if (!p[part.in[0]].local.empty()) saved[static_cast<std::size_t>(p[part.in[0]].root)] = true;
  for (const instruction& i : p.code) {
    const bool back = i.again || g.at(i.op).when != phase::forward;
    for (int b : i.in)
      if (back && (forward[static_cast<std::size_t>(p[b].root)] || p[b].persistent))
        saved[static_cast<std::size_t>(p[b].root)] = true;
    if (!back)
      for (int b : i.out) forward[static_cast<std::size_t>(p[b].root)] = true;
    if (i.kind == instruction::narrow)
      for (int b : i.out) saved[static_cast<std::size_t>(p[b].root)] = true;
  }
  program_memory m;
  long kept_in_arena = 0;
  for (std::size_t b = 0; b < p.buffers.size(); ++b) {
    if (p.buffers[b].root != static_cast<int>(b)) continue;
    const value_role role = g[p.buffers[b].value].role;
    if (p.buffers[b].persistent &&
        (role == value_role::weight || role == value_role::state || role == value_role::accumulator))
      m.kept += p.buffers[b].bytes;
    else if (p.buffers[b].persistent)
      (saved[b] && role == value_role::activation ? m.kept : m.transient) += p.buffers[b].bytes;
    if (!p.buffers[b].persistent && saved[b]) kept_in_arena += p.buffers[b].bytes;
  }
  m.kept += kept_in_arena;
  m.transient += p.arena_bytes > kept_in_arena ? p.arena_bytes - kept_in_arena : 0;
  return m;
}

}  // namespace cfp
