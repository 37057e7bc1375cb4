// What a program communicates.
#pragma once

#include <cfp/program/compressed_sum.hpp>
#include <cfp/program/program.hpp>

namespace cfp::inline v0_1 {

/// Adds the collective an instruction is to those of a step, as often as it runs.
constexpr void count_collective(const program& p, const graph& g, std::size_t instruction_index, collective_count& n) {
  const instruction& i = p.code[instruction_index];
  const auto count = [&](collective_kind kind, long bytes) {
    n.calls[static_cast<std::size_t>(kind)] += p.runs(instruction_index);
    n.bytes[static_cast<std::size_t>(kind)] += p.runs(instruction_index) * bytes;
  };
  if (i.kind == instruction::send) count(collective_kind::send, p[i.in[0]].bytes);
  if (i.kind == instruction::receive) count(collective_kind::send, 0);
  if (!i.communicates()) return;
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
constexpr collective_count count_collectives(const program& p, const graph& g) {
  collective_count n;
  for (std::size_t i = 0; i < p.code.size(); ++i) count_collective(p, g, i, n);
  return n;
}

}  // namespace cfp
