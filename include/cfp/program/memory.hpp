// Memory of a program, planned before it runs: lifetimes, then offsets in one arena.
#pragma once

#include <cfp/program/placed_pieces.hpp>
#include <cfp/program/readers.hpp>
#include <cfp/program/schedule.hpp>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

namespace cfp::inline v0_1 {

inline std::vector<lifetime> lifetimes(const program& p) {
  std::vector<lifetime> out(p.buffers.size());
  const std::vector<int> roots = detail::roots_of(p);
  const auto touch = [&](int b, int at) {
    lifetime& l = out[static_cast<std::size_t>(roots[static_cast<std::size_t>(b)])];
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
  std::vector<int> last_read(p.buffers.size(), -1);        // of a root: the instruction
  std::vector<std::vector<int>> others(p.buffers.size());  // buffers that share its memory
  for (std::size_t i = 0; i < p.code.size(); ++i)
    for (const int b : p.code[i].in) last_read[static_cast<std::size_t>(p[b].root)] = static_cast<int>(i);
  for (std::size_t b = 0; b < p.buffers.size(); ++b)
    if (p.buffers[b].root != static_cast<int>(b))
      others[static_cast<std::size_t>(p.buffers[b].root)].push_back(static_cast<int>(b));
  for (std::size_t i = 0; i < p.code.size(); ++i) {
    instruction& c = p.code[i];
    if (c.kind != instruction::reshard || c.step.kind != conversion_step::all_reduce) continue;
    const int from = p[c.in[0]].root, to = c.out[0];
    if (p[from].persistent || last_read[static_cast<std::size_t>(from)] > static_cast<int>(i)) continue;
    std::vector<int>& moved = others[static_cast<std::size_t>(to)];
    moved.push_back(to);
    for (const int b : moved) p[b].root = from;
    others[static_cast<std::size_t>(from)].insert(others[static_cast<std::size_t>(from)].end(), moved.begin(),
                                                  moved.end());
    last_read[static_cast<std::size_t>(from)] = last_read[static_cast<std::size_t>(to)];
  }
}

namespace detail {

inline bool has_place(const program& p, const std::vector<lifetime>& life, std::size_t b) {
  const buffer& x = p.buffers[b];
  return x.root == static_cast<int>(b) && !x.persistent && !x.on_host && life[b].from >= 0;
}

struct places {
  std::vector<std::pair<int, long>> at;  // of each buffer
  long bytes = 0;
};
inline places placed(const program& p, const std::vector<lifetime>& life, const std::vector<int>& order) {
  places out;
  placed_pieces pieces(static_cast<int>(p.code.size()));
  for (const int b : order) {
    const lifetime& mine = life[static_cast<std::size_t>(b)];
    const long at = pieces.lowest(mine, p[b].bytes);
    out.at.emplace_back(b, at);
    out.bytes = std::max(out.bytes, at + p[b].bytes);
    pieces.put({mine, at, at + p[b].bytes});
  }
  return out;
}

}  // namespace detail

/// Bytes, at each instruction, of the buffers that must be there then, but for those that always are.
inline std::vector<long> live_bytes(const program& p, const std::vector<lifetime>& life) {
  std::vector<long> out(p.code.size() + 2);
  for (std::size_t b = 0; b < p.buffers.size(); ++b) {
    if (!detail::has_place(p, life, b)) continue;
    out[static_cast<std::size_t>(life[b].from)] += p.buffers[b].bytes;
    out[static_cast<std::size_t>(life[b].to) + 1] -= p.buffers[b].bytes;
  }
  std::partial_sum(out.begin(), out.end(), out.begin());
  out.resize(p.code.size());
  return out;
}
inline std::vector<long> live_bytes(const program& p) { return live_bytes(p, lifetimes(p)); }

/// Gives every buffer that is not persistent an offset; buffers whose lifetimes overlap do not share memory. Each at
/// the lowest place that is free: the largest first, or if that wastes memory the longest there, whichever takes less.
/// Where all micro-batches are in the code those of a size first in the order of the program: what is of one then finds
/// the places of those before.
inline void plan_memory(program& p) {
  reduce_in_place(p);
  const std::vector<lifetime> life = lifetimes(p);
  for (buffer& b : p.buffers) b.offset = -1;
  std::vector<int> order;
  for (std::size_t b = 0; b < p.buffers.size(); ++b)
    if (detail::has_place(p, life, b)) order.push_back(static_cast<int>(b));
  const auto when = [&](int b) { return life[static_cast<std::size_t>(b)]; };
  const auto lasts = [&](int b) { return when(b).to - when(b).from; };
  const std::vector<long> live = live_bytes(p, life);
  const long least = live.empty() ? 0 : *std::max_element(live.begin(), live.end());
  constexpr double wasted = 1.01;
  std::optional<detail::places> best;
  const auto try_by = [&](const auto& key) {
    if (best && static_cast<double>(best->bytes) <= wasted * static_cast<double>(least)) return;
    std::vector<std::pair<decltype(key(0)), int>> keyed;
    for (const int b : order) keyed.emplace_back(key(b), b);
    std::sort(keyed.begin(), keyed.end());
    std::transform(keyed.begin(), keyed.end(), order.begin(), [](const auto& k) { return k.second; });
    if (detail::places found = detail::placed(p, life, order); !best || found.bytes < best->bytes)
      best = std::move(found);
  };
  if (p.has_all_passes()) {
    std::map<std::pair<int, long>, int> longest;  // of a tensor
    const auto tensor = [&](int b) { return std::pair(p[b].value, p[b].bytes); };
    for (const int b : order) longest[tensor(b)] = std::max(longest[tensor(b)], lasts(b));
    const auto brief = static_cast<int>(2 * p.code.size() / p.slots.size());
    try_by([&](int b) { return std::tuple(longest[tensor(b)] < brief, -p[b].bytes, when(b).from); });
    try_by([&](int b) { return std::tuple(-p[b].bytes, when(b).from); });
  }
  try_by([&](int b) { return std::tuple(-p[b].bytes, -lasts(b)); });
  try_by([&](int b) { return std::tuple(-lasts(b), -p[b].bytes); });
  for (const auto& [b, at] : best->at) p[b].offset = at;
  p.arena_bytes = best->bytes;
}

/// Bytes that an engine takes at most beside the planned memory: for prepared instructions and their bookkeeping.
inline constexpr long bytes_beside_instruction = 4096, bytes_beside_buffer = 256, bytes_beside_program = 65536;
inline long memory_allowance(const program& p) {
  return static_cast<long>(p.code.size()) * bytes_beside_instruction +
         static_cast<long>(p.buffers.size()) * bytes_beside_buffer + bytes_beside_program;
}
inline long predicted_peak(const program& p) { return p.arena_bytes + p.persistent_bytes() + memory_allowance(p); }

}  // namespace cfp
