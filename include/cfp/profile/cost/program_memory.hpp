// The memory a program needs, as a choice of a decision is priced by it.
#pragma once

#include <cfp/op/optimizer.hpp>
#include <cfp/program/program.hpp>

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace cfp::inline v0_1 {

/// Bytes a program keeps (weights, optimizer state, activations saved for backward) and bytes beyond them at its peak.
struct program_memory {
  long kept = 0, transient = 0;
  /// Of what it keeps: weights, state, sums of gradients, which are there whatever runs, and what all micro-batches of
  /// a step read that is made once.
  long resting = 0;
};

namespace detail {

struct saved_buffers_t {
  std::vector<bool> saved, early;  // roots: made before backward for it; before the first of several passes, for all
};
inline saved_buffers_t saved_buffers(const program& p, const graph& g) {
  std::vector<bool> forward(p.buffers.size()), saved(p.buffers.size()), early(p.buffers.size());
  for (std::size_t at = 0; at < p.code.size(); ++at) {
    const instruction& i = p.code[at];
    const bool back = i.again || g.at(i.op).when != phase::forward, once = static_cast<int>(at) < p.begin;
    for (int b : i.in) {
      const auto root = static_cast<std::size_t>(p[b].root);
      if ((back && (forward[root] || p[b].persistent)) || (!once && early[root])) saved[root] = true;
    }
    for (int b : i.out) {
      const auto root = static_cast<std::size_t>(p[b].root);
      if (!back) forward[root] = true;
      if (once) early[root] = true;
    }
  }
  return {std::move(saved), std::move(early)};
}

}  // namespace detail

/// Of a part lowered alone, what it is given counts as well: activations its backward operations read are kept in the
/// form it reads them, all else it is given is there while it runs. Gradients that are measured before they are used
/// wait for those of all other parts; there are no more of them, in any moment, than parts whose backward has run, and
/// those keep nothing for it any more. What it is given of `remade` values is computed again, and kept by nobody.
inline program_memory memory_of(const program& p, const graph& g, const std::vector<int>& remade = {}) {
  const auto [saved, early] = detail::saved_buffers(p, g);
  std::vector<bool> waits(p.buffers.size());
  for (const instruction& i : p.code)
    if (i.kind == instruction::compute && g.at(i.op).op == &info<square_norm_t>)
      for (const instruction& part : p.parts(i))
        if (!p[part.in[0]].local.empty()) waits[static_cast<std::size_t>(p[part.in[0]].root)] = true;
  const auto is_remade = [&](int v) { return std::find(remade.begin(), remade.end(), v) != remade.end(); };
  program_memory m;
  long kept_in_arena = 0, kept_outside = 0, waiting = 0, for_all_passes = 0;
  for (std::size_t b = 0; b < p.buffers.size(); ++b) {
    if (p.buffers[b].root != static_cast<int>(b) || p.buffers[b].on_host) continue;
    const value_role role = g[p.buffers[b].value].role;
    if (p.buffers[b].left_over ||
        (p.buffers[b].persistent &&
         (role == value_role::weight || role == value_role::state || role == value_role::accumulator)))
      m.resting += p.buffers[b].bytes;
    else if (p.buffers[b].persistent)
      (saved[b] && role == value_role::activation && !is_remade(p.buffers[b].value) ? kept_outside : m.transient) +=
          p.buffers[b].bytes;
    if (!p.buffers[b].persistent && saved[b] && early[b]) for_all_passes += p.buffers[b].bytes;
    if (!p.buffers[b].persistent && saved[b]) kept_in_arena += p.buffers[b].bytes;
    else if (!p.buffers[b].persistent && waits[b]) waiting += p.buffers[b].bytes;
  }
  if (p.has_all_passes()) kept_in_arena = std::min(kept_in_arena, p.arena_bytes);  // not all of them at one time
  const long most = std::max(kept_outside + kept_in_arena, waiting);
  m.kept = m.resting + most;
  m.resting += for_all_passes;
  m.transient += std::max(0L, kept_outside + p.arena_bytes - most);
  return m;
}

}  // namespace cfp
