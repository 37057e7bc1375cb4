// Moves elements where neighbours in the result are no neighbours in the operand: through a tile in shared memory, so
// that both are read and written in runs.
#pragma once

#include <cfp/backend/cuda/kernel/storage.hpp>

namespace cfp::inline v0_1::cuda {

/// The rows of a chain's call around a matrix: `column` is the dimension in which the operand's neighbours lie, the row
/// is that of the result's neighbours.
template <class T>
struct transpose_kernel {
  static constexpr int threads = 256;
  static constexpr int side = 64;
  static constexpr int rows_at_a_time = threads / side;
  static constexpr long shared_bytes = side * (side + 1) * static_cast<long>(sizeof(float));

  chain_tensor from, to;
  long height = 1, width = 1;  // along `column`, and along the row
  long from_height = 1, to_height = 1;
  chain_call around;  // what is left of the rows
  row_order order;
  long across = 1, down = 1;  // tiles

  transpose_kernel(const chain_call& c, int column)
      : from(c.input[0]), to(c.result[0]), height(c.size[column]), width(c.length),
        from_height(c.input[0].stride[column]), to_height(c.result[0].stride[column]), across(pieces_of(width, side)),
        down(pieces_of(height, side)) {
    for (int d = 0; d < c.dims; ++d) {
      if (d == column) continue;
      const int k = around.dims++;
      around.size[k] = c.size[d];
      around.input[0].stride[k] = c.input[0].stride[d];
      around.result[0].stride[k] = c.result[0].stride[d];
    }
    order = row_order(around);
  }
  /// The dimension in which the operand's neighbours lie, or -1.
  static int column_of(const chain_call& c) {
    for (int d = 0; d < c.dims; ++d)
      if (c.input[0].stride[d] == 1 && c.size[d] > 1) return d;
    return -1;
  }

  long blocks() const { return around.rows() * across * down; }

  template <class Thread>
  CFP_DEVICE void operator()(const Thread& t) const {
    long rest = t.block();
    const long x0 = rest % across * side;
    rest /= across;
    const long y0 = rest % down * side;
    rest /= down;
    long read = 0, written = 0;
    for (int d = order.dims() - 1; d >= 0; --d) {
      const long k = order.index(d, rest);
      read += k * around.input[0].stride[d];
      written += k * around.result[0].stride[d];
    }
    float* tile = reinterpret_cast<float*>(t.shared());
    const int line = t.thread() / side, place = t.thread() % side;
    fetched<1> f[side / rows_at_a_time];
    CFP_UNROLL
    for (int i = 0; i < side / rows_at_a_time; ++i) {  // neighbours down the height
      const long x = x0 + line + i * rows_at_a_time, y = y0 + place;
      if (x < width && y < height) fetch<T, 1>(from, read + x * from.along + y * from_height, f[i]);
    }
    CFP_UNROLL
    for (int i = 0; i < side / rows_at_a_time; ++i) {
      float one[1];
      widen<T>(from, f[i], one);
      tile[(line + i * rows_at_a_time) * (side + 1) + place] = one[0];
    }
    t.sync();
    CFP_UNROLL
    for (int i = 0; i < side / rows_at_a_time; ++i) {  // neighbours along the width
      const long x = x0 + place, y = y0 + line + i * rows_at_a_time;
      if (x < width && y < height)
        store_one<T>(to, written + x * to.along + y * to_height, tile[place * (side + 1) + line + i * rows_at_a_time]);
    }
  }
};

}  // namespace cfp::cuda
