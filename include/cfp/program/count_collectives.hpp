// What a program communicates.
#pragma once

#include <cfp/program/compressed_sum.hpp>
#include <cfp/program/handed.hpp>
#include <cfp/program/program.hpp>

namespace cfp::inline v0_1 {

inline constexpr int anyone = -1;  ///< a rank that has neighbours on both sides

/// Adds the collective an instruction is to those of a step, as often as it runs. What is handed on is one, of a
/// border; to a `device` whose calls are counted, as many as it sends and receives.
constexpr void count_collective(const program& p, const graph& g, std::size_t instruction_index, collective_count& n,
                                int device = anyone) {
  const instruction& i = p.code[instruction_index];
  const auto count = [&](collective_kind kind, long bytes, long calls = 1) {
    n.calls[static_cast<std::size_t>(kind)] += calls * p.runs(instruction_index);
    n.bytes[static_cast<std::size_t>(kind)] += p.runs(instruction_index) * bytes;
  };
  if (i.kind == instruction::send) count(collective_kind::send, p[i.in[0]].bytes);
  if (i.kind == instruction::receive) count(collective_kind::send, 0);
  if (!i.communicates()) return;
  if (i.kind == instruction::hand) {
    const handed h = handed_by(p, g, i, std::max(device, 0));
    const bool sends = h.next() >= 0, receives = h.previous() >= 0;
    if (device == anyone) return count(h.collective(), handed_bytes(p, g, i));
    return count(h.collective(), sends ? handed_bytes(p, g, i) : 0, h.slices() * (sends + receives));
  }
  const buffer& from = p[i.in[0]];
  if (i.step.sent_as != compression::none) {
    const compressed_sum s(i.step, elements(from.local), i.step.devices(p.mesh));
    count(collective_kind::all_to_all, (s.pieces - 1) * s.bytes);
    if (s.all) count(collective_kind::all_gather, (s.pieces - 1) * s.bytes);
    return;
  }
  const long bytes = elements(g[from.value].shape) * g[from.value].width(p.real_bytes);
  count(i.step.collective(), bytes_sent(i.step, from.held, bytes, p.mesh));
}

/// The collectives a step of a program will run, from its conversions.
constexpr collective_count count_collectives(const program& p, const graph& g, int device = anyone) {
  collective_count n;
  for (std::size_t i = 0; i < p.code.size(); ++i) count_collective(p, g, i, n, device);
  return n;
}

}  // namespace cfp
