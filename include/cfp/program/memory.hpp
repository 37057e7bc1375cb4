// Memory of a program, planned before it runs: lifetimes, then offsets in one arena.
#pragma once

#include <cfp/program/schedule.hpp>

#include <algorithm>

namespace cfp::inline v0_1 {

inline constexpr long memory_alignment = 64;

/// First and last instruction while which a buffer's memory is in use: of collectives beside, until they are known to
/// be done.
struct lifetime {
  int from = -1, to = -1;
};

inline std::vector<lifetime> lifetimes(const program& p) {
  std::vector<lifetime> out(p.buffers.size());
  const auto touch = [&](int b, int at) {
    lifetime& l = out[static_cast<std::size_t>(p[b].root)];
    if (l.from < 0) l.from = at;
    l.to = std::max(l.to, at);
  };
  const stream_order order = order_of(p);
  for (std::size_t i = 0; i < p.code.size(); ++i)
    for (const int at : {static_cast<int>(i), order.joined[i] - 1}) {
      if (at < static_cast<int>(i)) continue;
      for (int b : p.code[i].in) touch(b, at);
      for (int b : p.code[i].out) touch(b, at);
    }
  if (p.loss >= 0) touch(p.loss, static_cast<int>(p.code.size()));
  if (p.passes > 1)  // what was there before the first pass must be there before the next
    for (lifetime& l : out)
      if (l.from >= 0 && l.from < p.begin && l.to >= p.begin && l.to < p.end) l.to = p.end;
  return out;
}

/// Lets an all-reduce work in the memory of an operand that nothing reads afterwards.
inline void reduce_in_place(program& p) {
  std::vector<lifetime> life = lifetimes(p);
  for (std::size_t i = 0; i < p.code.size(); ++i) {
    instruction& c = p.code[i];
    if (c.kind != instruction::reshard || c.step.kind != conversion_step::all_reduce) continue;
    const int from = p[c.in[0]].root, to = c.out[0];
    bool last = !p[from].persistent;
    for (std::size_t j = i + 1;
         j < p.code.size() && last && static_cast<int>(j) <= life[static_cast<std::size_t>(from)].to; ++j)
      for (int b : p.code[j].in) last = last && p[b].root != from;
    if (!last) continue;
    for (buffer& b : p.buffers)
      if (b.root == to) b.root = from;
    life[static_cast<std::size_t>(from)].to = life[static_cast<std::size_t>(to)].to;
  }
}

/// Gives every buffer that is not persistent an offset; buffers whose lifetimes overlap do not share memory.
/// Largest first, each at the lowest place that is free.
inline void plan_memory(program& p) {
  reduce_in_place(p);
  const std::vector<lifetime> life = lifetimes(p);
  for (buffer& b : p.buffers) b.offset = -1;
  std::vector<int> order, placed;
  for (std::size_t b = 0; b < p.buffers.size(); ++b)
    if (p.buffers[b].root == static_cast<int>(b) && !p.buffers[b].persistent && life[b].from >= 0)
      order.push_back(static_cast<int>(b));
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return p[a].bytes > p[b].bytes; });
  p.arena_bytes = 0;
  for (int b : order) {
    const lifetime& mine = life[static_cast<std::size_t>(b)];
    long at = 0;
    for (int other : placed) {  // sorted by offset
      const lifetime& theirs = life[static_cast<std::size_t>(other)];
      if (theirs.to < mine.from || mine.to < theirs.from) continue;
      if (p[other].offset >= at + p[b].bytes) break;
      const long end = p[other].offset + p[other].bytes;
      at = std::max(at, (end + memory_alignment - 1) / memory_alignment * memory_alignment);
    }
    p[b].offset = at;
    p.arena_bytes = std::max(p.arena_bytes, at + p[b].bytes);
    placed.insert(
        std::upper_bound(placed.begin(), placed.end(), b, [&](int x, int y) { return p[x].offset < p[y].offset; }), b);
  }
}

/// Bytes that an engine takes at most beside the planned memory: for prepared instructions and their bookkeeping.
inline constexpr long bytes_beside_instruction = 4096, bytes_beside_buffer = 256, bytes_beside_program = 65536;
inline long memory_allowance(const program& p) {
  return static_cast<long>(p.code.size()) * bytes_beside_instruction +
         static_cast<long>(p.buffers.size()) * bytes_beside_buffer + bytes_beside_program;
}
inline long predicted_peak(const program& p) { return p.arena_bytes + p.persistent_bytes() + memory_allowance(p); }

}  // namespace cfp
