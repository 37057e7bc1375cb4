// One position of a scan on the processor.
#pragma once

#include <cfp/op/bf16.hpp>

namespace cfp::inline v0_1::host {

/// That of a GPU launches a kernel which does the same (`cuda::scanner`).
struct scanner {
  /// For each of `outer` rows of `inner` numbers: out = carry, then carry = kept carry + in, where a number of `kept`
  /// is that of `per` neighbours (0: none are, as if it were one). In `in`, `kept` and `out` rows lie `apart` rows
  /// apart.
  template <class T>
  void step(const T* in, const T* kept, long per, T* out, long apart, T* carry, long outer, long inner) const {
    using wide = wide_t<T>;
    const long of_kept = per > 0 ? inner / per : 0;
    for (long o = 0; o < outer; ++o)
      for (long i = 0; i < inner; ++i) {
        T& c = carry[o * inner + i];
        const wide was = static_cast<wide>(c),
                   factor = per > 0 ? static_cast<wide>(kept[o * apart * of_kept + i / per]) : wide(1);
        out[o * apart * inner + i] = c;
        c = T(factor * was + static_cast<wide>(in[o * apart * inner + i]));
      }
  }
};

}  // namespace cfp::host
