// A sum over devices whose pieces are sent in fewer bytes: every device adds up one, in full precision, and what is
// lost is kept for the next run (error feedback).
#pragma once

#include <cfp/core/conversion_step.hpp>

namespace cfp::inline v0_1 {

/// Sizes, on a device that holds `numbers` before a step among `devices`.
struct compressed_sum {
  long pieces, piece;  ///< as many as devices; the numbers of each, the last of which may be filled up
  long bytes;          ///< of a piece, as it is sent
  bool all;            ///< the sums are sent to all, compressed too

  constexpr compressed_sum(const conversion_step& s, long numbers, long devices)
      : pieces(devices), piece((numbers + devices - 1) / devices), bytes(compressed_bytes(s.sent_as, piece)),
        all(s.kind == conversion_step::all_reduce) {}

  /// Bytes a device sends, in an all-to-all and maybe an all-gather.
  constexpr long sent() const { return (all ? 2 : 1) * (pieces - 1) * bytes; }
  /// Memory beside operand and result: what is sent and what comes, and numbers left over.
  constexpr long scratch_bytes() const { return 2 * pieces * bytes; }
  constexpr long left_over() const { return pieces * piece + (all ? piece : 0); }
};

}  // namespace cfp
