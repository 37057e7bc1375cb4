// Attention without its matrix of scores: a block of threads keeps some queries, and passes over the keys and values
// that they see (as FlashAttention-2, arXiv 2307.08691). Sums and maxima are of float; shares of the values are rounded
// to T before that product.
#pragma once

#include <cfp/backend/cuda/attention/attention_tile.hpp>

#include <cmath>

namespace cfp::inline v0_1::cuda {

/// Writes out, max and sum. A query that sees no key, or only scores of -infinity, gets 0, -infinity and 0. Scores that
/// are no number make `out` and `sum` none; `max` is then of the others. `Queries` to a block and `Rows` of them to a
/// warp; `Keys` to a tile. Copies of the values overlap with the scores, those of the next keys with the rest.
template <class T, int D, int Queries = 128, int Keys = (D > 96 ? 48 : 64), int Rows = 32>
struct attention_forward {
  static constexpr int threads = Queries / Rows * warp_size;
  static constexpr long shared_bytes = (Queries + 2 * Keys) * D * static_cast<long>(sizeof(T));
  using tile = attention_tile<T, D>;
  static constexpr int M = Rows / 16, N = Keys / 8;

  attention_view v;

  CFP_HOST_DEVICE long tiles() const { return (v.queries + Queries - 1) / Queries; }
  long blocks() const { return attention_heads(v.c) * tiles(); }

  template <class Thread>
  CFP_DEVICE void operator()(const Thread& t) const {
    const auto [h, index] = part_of(t, v, tiles());
    const int first = first_query(index), own = Rows * uniform(t, t.warp());
    const int end = v.seen(first + Queries - 1);  // only the last tile has queries past the end
    T* const queries = reinterpret_cast<T*>(t.shared());
    T* const keys = queries + Queries * D;
    T* const values = keys + Keys * D;
    tile::template load<Queries>(t, v, queries, v.c.q, h, first, v.queries);
    if (end > 0) tile::template load<Keys>(t, v, keys, v.c.k, h, 0, v.keys);
    t.commit();
    float out[M][tile::chunks][4] = {}, max[M][2], sum[M][2] = {};
    CFP_UNROLL
    for (int m = 0; m < M; ++m) max[m][0] = max[m][1] = -infinite;

    for (int key = 0; key < end; key += Keys) {
      float x[M][N][4];
      t.template wait<0>();
      t.sync();  // the keys have come, and the last values are no longer needed
      tile::template load<Keys>(t, v, values, v.c.v, h, key, v.keys);
      t.commit();
      tile::multiply_rows(t, x, queries + own * D, keys);
      t.template wait<0>();
      t.sync();  // the other way round
      if (key + Keys < end) tile::template load<Keys>(t, v, keys, v.c.k, h, key + Keys, v.keys);
      t.commit();
      hide_keys(t, v, x, first + own, key);
      share(t, x, out, max, sum);
      tile::add_product(t, out, x, values);
    }
    if (end == 0) {  // the queries' place is written to next
      t.template wait<0>();
      t.sync();
    }
    finish(t, out, max, sum, queries);
  }

 private:
  // Of a block; those that see most keys come first.
  CFP_DEVICE int first_query(int index) const { return static_cast<int>(tiles() - 1 - index) * Queries; }

  // Scores become powers relative to the largest so far, to which the sums until now are brought.
  template <class Thread>
  CFP_DEVICE void share(const Thread& t, float (&x)[M][N][4], float (&out)[M][tile::chunks][4], float (&max)[M][2],
                        float (&sum)[M][2]) const {
    CFP_UNROLL
    for (int m = 0; m < M; ++m) CFP_UNROLL
    for (int h = 0; h < 2; ++h) {
      float top = max[m][h];
      CFP_UNROLL
      for (int n = 0; n < N; ++n) top = std::fmax(top, std::fmax(x[m][n][2 * h], x[m][n][2 * h + 1]));
      top = std::fmax(top, t.shuffle_xor(top, 1));
      top = std::fmax(top, t.shuffle_xor(top, 2));
      const float base = top == -infinite ? 0 : top * v.power;  // no key yet: all powers are 0
      const float factor = t.exp2(max[m][h] * v.power - base);
      max[m][h] = top;
      sum[m][h] *= factor;
      CFP_UNROLL
      for (int n = 0; n < N; ++n) CFP_UNROLL
      for (int i = 2 * h; i < 2 * h + 2; ++i) {
        x[m][n][i] = t.exp2(x[m][n][i] * v.power - base);
        sum[m][h] += x[m][n][i];
      }
      CFP_UNROLL
      for (int n = 0; n < tile::chunks; ++n) CFP_UNROLL
      for (int i = 2 * h; i < 2 * h + 2; ++i) out[m][n][i] *= factor;
    }
  }

  // Adds the lanes' sums of a row, divides by them, and stores the warp's rows by way of the queries' tile.
  template <class Thread>
  CFP_DEVICE void finish(const Thread& t, float (&out)[M][tile::chunks][4], const float (&max)[M][2],
                         const float (&sum)[M][2], T* queries) const {
    const auto [h, index] = part_of(t, v, tiles());
    const int own = Rows * uniform(t, t.warp()), query = first_query(index) + own;
    const long statistics = v.number(h) * v.queries + query;
    CFP_UNROLL
    for (int m = 0; m < M; ++m) CFP_UNROLL
    for (int i = 0; i < 2; ++i) {
      float all = sum[m][i];
      all += t.shuffle_xor(all, 1);
      all += t.shuffle_xor(all, 2);
      const float per = all == 0 ? 0 : 1 / all;
      CFP_UNROLL
      for (int n = 0; n < tile::chunks; ++n) CFP_UNROLL
      for (int j = 2 * i; j < 2 * i + 2; ++j) out[m][n][j] *= per;
      const int row = 16 * m + 8 * i + t.lane() / 4;
      if (t.lane() % 4 == 0 && query + row < v.queries) {
        v.c.max[statistics + row] = max[m][i] * v.scale;
        v.c.sum[statistics + row] = all;
      }
    }
    tile::store(t, out, queries + own * D, v.rows<T>(v.c.out, h) + query * v.c.out.row, v.c.out.row, v.queries - query,
                v.depth);
  }
};

}  // namespace cfp::cuda
