// Rotary position embedding: a thread keeps the rotations of a few pairs at one position, and turns these pairs in many
// rows.
#pragma once

#include <cfp/backend/cuda/chain/run_chain.hpp>
#include <cfp/op/attention.hpp>
#include <cfp/program/loop_nest.hpp>

#include <type_traits>

namespace cfp::inline v0_1::cuda {

/// Operators that it is for.
template <class Op>
inline constexpr bool has_rotary_kernel =
    std::is_same_v<Op, rotary_t> || std::is_same_v<Op, cfp::detail::rotary_input_t> ||
    std::is_same_v<Op, slowed_rotary_t> || std::is_same_v<Op, cfp::detail::slowed_rotary_input_t>;

/// `Op` is linear and reads the indices s, half, pair, out; of half and out, both of size 2, one is reduced and one is
/// the result's.
template <class Op, class T, int V>
struct rotary_kernel {
  static constexpr int threads = 128;
  static constexpr int rows_each = 8;

  chain_call c;  // rows but for the position; along the pairs
  row_order order;
  divisor vectors, positions;
  long position_first, from_position, to_position, from_half, to_half;
  bool turned_back;  // the operand has `out`, the result `half`
  long chunks;

  long blocks() const { return pieces_of(vectors.by() * positions.by() * chunks, threads); }

  template <class Thread>
  CFP_DEVICE void operator()(const Thread& t) const {
    const long task = t.block() * threads + t.thread();
    if (task >= vectors.by() * positions.by() * chunks) return;
    long k, s;
    const long chunk = positions.divide(vectors.divide(task, k), s);
    k *= V;
    float turn[2][2][V];  // [result's half][operand's half]
    CFP_UNROLL
    for (int y = 0; y < 2; ++y) {
      CFP_UNROLL
      for (int x = 0; x < 2; ++x) {
        CFP_UNROLL
        for (int j = 0; j < V; ++j)
          turn[y][x][j] = turned_back ? rotation(position_first + s, y, c.first + k + j, x)
                                      : rotation(position_first + s, x, c.first + k + j, y);
      }
    }
    const long rows = c.rows();
    for (long row = chunk * rows_each; row < (chunk + 1) * rows_each && row < rows; ++row) {
      long from = s * from_position + k, to = s * to_position + k, rest = row;
      for (int d = order.dims() - 1; d >= 0; --d) {
        const long i = order.index(d, rest);
        from += i * c.input[0].stride[d];
        to += i * c.result[0].stride[d];
      }
      fetched<V> f[2];
      float x[2][V];
      fetch<T, V>(c.input[0], from, f[0]);
      fetch<T, V>(c.input[0], from + from_half, f[1]);
      widen<T>(c.input[0], f[0], x[0]);
      widen<T>(c.input[0], f[1], x[1]);
      CFP_UNROLL
      for (int y = 0; y < 2; ++y) {
        float out[V];
        CFP_UNROLL
        for (int j = 0; j < V; ++j) out[j] = x[0][j] * turn[y][0][j] + x[1][j] * turn[y][1][j];
        store<T>(c.result[0], to + y * to_half, out);
      }
    }
  }

 private:
  CFP_DEVICE float rotation(long position, long half, long pair, long out) const {
    const auto& by = c.scalar[0];
    if constexpr (Op::scalars == 2) return Op::apply(1.0f, by[0], by[1], position, half, pair, out);
    else return Op::apply(1.0f, by[0], by[1], by[2], by[3], by[4], by[5], position, half, pair, out);
  }
};

/// Whether the kernel above is for this call; others run as maps of any shape.
inline bool is_rotary(const call& c) {
  const rule& r = c.r();
  if (r.coordinates.size() != 4 || r.cuts_coordinates()) return false;
  const int s = r.coordinates[0], half = r.coordinates[1], pair = r.coordinates[2], out = r.coordinates[3];
  const bool back = r.results[0].dim_of(half) >= 0;
  const call_tensor &x = c.operand[0], &y = c.result[0];
  return c.size[half] == 2 && c.size[out] == 2 && c.start[half] == 0 && c.start[out] == 0 &&
         r.results[0].dim_of(back ? out : half) < 0 && r.operands[0].dim_of(back ? half : out) < 0 &&
         r.results[0].dim_of(s) >= 0 && x.stride[pair] == 1 && y.stride[pair] == 1;
}

namespace detail {

template <class Op, class T, int V>
rotary_kernel<Op, T, V> bind_rotary(const call& c) {
  const rule& r = c.r();
  const int s = r.coordinates[0], half = r.coordinates[1], pair = r.coordinates[2], out = r.coordinates[3];
  const call_tensor* all[2] = {&c.operand[0], &c.result[0]};
  loop_nest<2> loops;
  for (signed char f : r.results[0].factors)
    if (f != s && f != pair && f != half && f != out && c.size[f] > 1) loops.add(c, f, all);
  loops.collapse(r);
  rotary_kernel<Op, T, V> k{};
  k.turned_back = r.results[0].dim_of(half) >= 0;
  k.c.dims = loops.depth;
  for (int d = 0; d < loops.depth; ++d) k.c.size[d] = loops.size[d];
  k.c.length = c.size[pair];
  k.c.first = c.start[pair];
  chain_tensor* const to[2] = {&k.c.input[0], &k.c.result[0]};
  for (int t = 0; t < 2; ++t) {
    to[t]->data = all[t]->data;
    to[t]->wide = all[t]->wide;
    to[t]->along = 1;
    for (int d = 0; d < loops.depth; ++d) to[t]->stride[d] = loops.stride[t][d];
  }
  for (int i = 0; i < Op::scalars; ++i) k.c.scalar[0][i] = static_cast<float>(c.op->scalars[i]);
  k.order = row_order(k.c);
  k.vectors = divisor(k.c.length / V);
  k.positions = divisor(c.size[s]);
  k.position_first = c.start[s];
  k.from_position = c.operand[0].stride[s];
  k.to_position = c.result[0].stride[s];
  k.from_half = c.operand[0].stride[k.turned_back ? out : half];
  k.to_half = c.result[0].stride[k.turned_back ? half : out];
  k.chunks = pieces_of(k.c.rows(), k.rows_each);
  return k;
}

}  // namespace detail

/// `is_rotary(c)`
template <class Op, class T, class Queue>
void run_rotary(const Queue& q, const call& c) {
  const auto one = detail::bind_rotary<Op, T, 1>(c);
  constexpr int width = full_width<T>;
  const bool even = one.c.length % width == 0 && one.from_position % width == 0 && one.to_position % width == 0 &&
                    one.from_half % width == 0 && one.to_half % width == 0;
  if (even && detail::is_packed(one.c.input[0], one.c.dims, width) &&
      detail::is_packed(one.c.result[0], one.c.dims, width))
    detail::launch(q, detail::bind_rotary<Op, T, width>(c));
  else detail::launch(q, one);
}

}  // namespace cfp::cuda
