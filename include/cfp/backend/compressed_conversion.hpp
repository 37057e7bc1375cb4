// Sums over ranks whose pieces are sent in fewer bytes, wherever their memory is.
#pragma once

#include <cfp/backend/conversion.hpp>
#include <cfp/program/compressed_sum.hpp>

#include <cstddef>

namespace cfp::inline v0_1 {

/// Sums up pieces that are sent compressed, one on each rank, and where all want them sends the sums, too. `in` has the
/// pieces one behind the other; `sent` is memory for what goes and what comes, `left_over` for what is kept.
template <class T, class Coder, class Communicator>
void sum_compressed(const Coder& by, compression form, const compressed_sum& s, const T* in, long count, T* out,
                    std::byte* sent, T* left_over, const Communicator& among) {
  std::byte* const come = sent + s.pieces * s.bytes;
  const auto bytes = static_cast<std::size_t>(s.bytes);
  by.encode(form, in, count, left_over, s.piece, s.pieces, sent);
  among.all_to_all(sent, come, bytes);
  by.decode(form, come, s.piece, 1, s.pieces, out, s.piece);
  if (!s.all) return;
  by.encode(form, out, s.piece, left_over + s.pieces * s.piece, s.piece, 1, sent);
  among.all_gather(sent, come, bytes);
  by.decode(form, come, s.piece, s.pieces, 1, out, count);
}

/// Runs a step of a conversion that is such a sum; `memory[b]` is that of buffer b.
template <class T, class Device, class Queue, class Memory>
void run_compressed(Device& on, const Queue& q, const program& p, const instruction& i, const Memory& memory) {
  const buffer& from = p[i.in[0]];
  const long numbers = elements(from.local);
  const compressed_sum s(i.step, numbers, i.step.devices(p.mesh));
  const auto* in = static_cast<const T*>(memory[i.in[0]]);
  const int sent = i.out.size() - 2;
  if (sent > 1) {  // pieces that do not lie one behind the other
    auto* const packed = static_cast<T*>(memory[i.out[1]]);
    const around w = view_around(from.local, i.step.dim);
    for (long k = 0; k < s.pieces; ++k) detail::pack(on.mover(q), in, packed + k * s.piece, w, s.pieces, k);
    in = packed;
  }
  sum_compressed(on.coder(q), i.step.sent_as, s, in, numbers, static_cast<T*>(memory[i.out[0]]),
                 static_cast<std::byte*>(memory[i.out[sent]]), static_cast<T*>(memory[i.out[sent + 1]]),
                 on.among(i.step.set(), q));
}

/// Runs any step of a conversion.
template <class T, class Device, class Queue, class Memory>
void run_step(Device& on, const Queue& q, const program& p, const instruction& i, const Memory& memory) {
  if (i.step.sent_as != compression::none) return run_compressed<T>(on, q, p, i, memory);
  const auto at = [&](int k) { return k < i.out.size() ? static_cast<T*>(memory[i.out[k]]) : nullptr; };
  run_conversion<T>(on.mover(q), i.step, p[i.in[0]], p[i.out[0]], static_cast<T*>(memory[i.in[0]]), at(0), at(1), at(2),
                    p.mesh, on.rank(), on.among(i.step.set(), q));
}

}  // namespace cfp
