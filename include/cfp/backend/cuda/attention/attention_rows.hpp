// What the backward kernels need of every query.
#pragma once

#include <cfp/backend/cuda/attention/attention_call.hpp>

#include <cmath>

namespace cfp::inline v0_1::cuda {

/// Writes to the workspace, for every query, log2 of the sum of exp(scale score), and the product of the result with
/// its gradient. Where there is no query, or it sees no key, the logarithm is infinity, so that all shares are 0.
template <class T>
struct attention_rows {
  static constexpr int threads = 128, team = 16;  ///< lanes to a row, 8 numbers to a lane
  static constexpr long shared_bytes = 0;

  attention_view v;

  CFP_HOST_DEVICE long tiles() const { return v.padded / attention_padding; }
  long blocks() const { return attention_heads(v.c) * tiles(); }

  template <class Thread>
  CFP_DEVICE void operator()(const Thread& t) const {
    const attention_head h = v.head(t.block() / tiles());
    const long first = t.block() % tiles() * attention_padding, statistics = v.number(h) * v.queries;
    const int lane = t.thread() % team, column = lane * 8;
    const T* const out = v.rows<const T>(v.c.out, h) + column;
    const T* const d_out = v.rows<const T>(v.c.d_out, h) + column;
    for (int i = t.thread() / team; i < attention_padding; i += threads / team) {
      const long row = first + i;
      float dot = 0;
      if (row < v.queries && column < v.depth) {
        const auto x = *reinterpret_cast<const pack<T, 8>*>(out + row * v.c.out.row),
                   y = *reinterpret_cast<const pack<T, 8>*>(d_out + row * v.c.d_out.row);
        for (int j = 0; j < 8; ++j) dot += static_cast<float>(x.at[j]) * static_cast<float>(y.at[j]);
      }
      for (int n = team / 2; n > 0; n /= 2) dot += t.shuffle_xor(dot, n);
      if (lane != 0) continue;
      const float sum = row < v.queries ? v.c.sum[statistics + row] : 0;
      const float level = sum == 0 ? infinite : v.c.max[statistics + row] * 1.44269504f + std::log2(sum);
      v.workspace(h)[row] = {level, dot};
    }
  }
};

}  // namespace cfp::cuda
