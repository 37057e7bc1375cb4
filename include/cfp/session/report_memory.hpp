// What memory of a rank holds over a step, by kind.
#pragma once

#include <cfp/export/report/report_view.hpp>
#include <cfp/profile/cost/program_memory.hpp>
#include <cfp/profile/machine/stream_events.hpp>
#include <cfp/program/memory.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace cfp::inline v0_1::detail {

enum class memory_kind : std::uint8_t { weights, state, gradients, kept, copies, passing, given, unused, beside };
inline constexpr std::array memory_kind_names = {
    "weights", "optimizer state",      "gradients of weights", "kept for backward", "copies of weights",
    "passing", "inputs and constants", "unused between them",  "beside the plan"};
using memory_of_kinds = std::array<long, memory_kind_names.size()>;

inline std::vector<memory_kind> memory_kinds_of(const program& p, const graph& g) {
  const std::vector<bool> saved = saved_buffers(p, g).saved;
  std::vector<memory_kind> out;
  for (std::size_t b = 0; b < p.buffers.size(); ++b) {
    const buffer& x = p.buffers[b];
    const value_role role = g[x.value].role;
    const bool whole = role == value_role::weight && x.persistent;
    out.push_back(whole                                                       ? memory_kind::weights
                  : role == value_role::state                                 ? memory_kind::state
                  : x.left_over || is_weight_gradient(g, x.value)             ? memory_kind::gradients
                  : role == value_role::weight                                ? memory_kind::copies
                  : role == value_role::input || role == value_role::constant ? memory_kind::given
                  : saved[b]                                                  ? memory_kind::kept
                                                                              : memory_kind::passing);
  }
  return out;
}

/// At each instruction. `beside`: what a device takes beside arena and persistent buffers. All sum up to the same.
inline std::vector<memory_of_kinds> memory_by_kind(const program& p, const graph& g, long beside) {
  const std::vector<memory_kind> kinds = memory_kinds_of(p, g);
  const std::vector<lifetime> life = lifetimes(p);
  std::vector<memory_of_kinds> out(p.code.size() + 1, memory_of_kinds{});
  memory_of_kinds always{};
  for (std::size_t b = 0; b < p.buffers.size(); ++b) {
    const auto kind = static_cast<std::size_t>(kinds[b]);
    if (has_place(p, life, b)) {
      out[static_cast<std::size_t>(life[b].from)][kind] += p.buffers[b].bytes;
      out[std::min(out.size() - 1, static_cast<std::size_t>(life[b].to) + 1)][kind] -= p.buffers[b].bytes;
    } else if (p.buffers[b].persistent && !p.buffers[b].on_host && p.buffers[b].root == static_cast<int>(b)) {
      always[kind] += p.buffers[b].bytes;
    }
  }
  always[static_cast<std::size_t>(memory_kind::beside)] = beside;
  memory_of_kinds now{};
  for (memory_of_kinds& at : out) {
    long used = 0;
    for (std::size_t k = 0; k < now.size(); ++k) used += now[k] += at[k];
    for (std::size_t k = 0; k < now.size(); ++k) at[k] = now[k] + always[k];
    at[static_cast<std::size_t>(memory_kind::unused)] += p.arena_bytes - used;
  }
  out.resize(p.code.size());
  return out;
}

/// Over a step that takes `ms`; of many moments so many are left, each the one of its neighbours that takes most.
inline std::vector<report_view::memory_point> memory_over_step(const std::vector<memory_of_kinds>& at,
                                                               const std::vector<stream_events::arrival>& came,
                                                               double ms) {
  constexpr std::size_t most = 1500, unused = static_cast<std::size_t>(memory_kind::unused);
  std::vector<report_view::memory_point> out;
  long least = 0;  // unused, of those in the same slice of time
  long slice = -1;
  for (const stream_events::arrival& a : came) {
    const memory_of_kinds& now = at[static_cast<std::size_t>(a.instruction)];
    const long mine = ms > 0 ? static_cast<long>(static_cast<double>(most) * a.ms / ms) : 0;
    if (mine == slice && now[unused] >= least) continue;
    report_view::memory_point point{a.ms, {now.begin(), now.end()}};
    if (mine == slice) out.back() = std::move(point);
    else out.push_back(std::move(point));
    slice = mine, least = now[unused];
  }
  if (!out.empty()) out.push_back({ms, out.back().bytes});
  return out;
}

}  // namespace cfp::inline v0_1::detail
