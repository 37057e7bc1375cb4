// The gradient of attention's queries: a block keeps some queries, as forward, and passes over the keys and values that
// they see. The shares of the values are computed again from the statistics.
#pragma once

#include <cfp/backend/cuda/attention/attention_tile.hpp>

namespace cfp::inline v0_1::cuda {

/// Writes dq. The workspace has been filled by attention_rows. Two tiles of keys and of values take turns.
template <class T, int D, int Queries = 128, int Keys = 32, int Rows = 32>
struct attention_query_gradient {
  static constexpr int threads = Queries / Rows * warp_size;
  static constexpr long shared_bytes = (2 * Queries + 4 * Keys) * D * static_cast<long>(sizeof(T));
  using tile = attention_tile<T, D>;
  static constexpr int M = Rows / 16, N = Keys / 8;

  attention_view v;

  CFP_HOST_DEVICE long tiles() const { return (v.queries + Queries - 1) / Queries; }
  long blocks() const { return attention_heads(v.c) * tiles(); }

  template <class Thread>
  CFP_DEVICE void operator()(const Thread& t) const {
    const auto [h, index] = part_of(t, v, tiles());
    const int first = first_query(index), own = Rows * uniform(t, t.warp()), end = v.seen(first + Queries - 1);
    T* const queries = reinterpret_cast<T*>(t.shared());
    T* const d_out = queries + Queries * D;
    T* const pairs = d_out + Queries * D;  // keys, values, keys, values

    tile::template load<Queries>(t, v, queries, v.c.q, h, first, v.queries);
    tile::template load<Queries>(t, v, d_out, v.c.d_out, h, first, v.queries);
    if (end > 0) load_pair(t, pairs, h, 0);
    t.commit();
    float level[M][2], dot[M][2], dq[M][tile::chunks][4] = {};
    CFP_UNROLL
    for (int m = 0; m < M; ++m) CFP_UNROLL
    for (int i = 0; i < 2; ++i) {
      const int row = first + own + 16 * m + 8 * i + t.lane() / 4;
      const pack<float, 2> x = row < v.queries ? v.workspace(h)[row] : pack<float, 2>{{infinite, 0}};
      level[m][i] = x.at[0];
      dot[m][i] = x.at[1];
    }

    for (int key = 0; key < end; key += Keys) {
      const T* const keys = pairs + key / Keys % 2 * (2 * Keys * D);
      t.template wait<0>();
      t.sync();  // this pair has come, and the other is no longer needed
      if (key + Keys < end) load_pair(t, pairs + (key / Keys + 1) % 2 * (2 * Keys * D), h, key + Keys);
      t.commit();
      if (key >= v.seen(first + own + Rows - 1)) continue;
      float x[M][N][4], dx[M][N][4];
      tile::multiply_rows(t, x, queries + own * D, keys);
      tile::multiply_rows(t, dx, d_out + own * D, keys + Keys * D);
      hide_keys(t, v, x, first + own, key);
      CFP_UNROLL
      for (int m = 0; m < M; ++m) CFP_UNROLL
      for (int n = 0; n < N; ++n) CFP_UNROLL
      for (int i = 0; i < 4; ++i)
        dx[m][n][i] = t.exp2(x[m][n][i] * v.power - level[m][i / 2]) * (dx[m][n][i] - dot[m][i / 2]);
      tile::add_product(t, dq, dx, keys);
    }
    if (end == 0) {  // the queries' place is written to next
      t.template wait<0>();
      t.sync();
    }
    tile::scale(dq, v.scale);
    finish(t, dq, queries);
  }

 private:
  // Of a block; those that see most keys come first.
  CFP_DEVICE int first_query(int index) const { return static_cast<int>(tiles() - 1 - index) * Queries; }

  template <class Thread>
  CFP_DEVICE void finish(const Thread& t, const float (&dq)[M][tile::chunks][4], T* queries) const {
    const auto [h, index] = part_of(t, v, tiles());
    const int own = Rows * uniform(t, t.warp()), query = first_query(index) + own;
    tile::store(t, dq, queries + own * D, v.rows<T>(v.c.dq, h) + query * v.c.dq.row, v.c.dq.row, v.queries - query,
                v.depth);
  }
  template <class Thread>
  CFP_DEVICE void load_pair(const Thread& t, T* pair, const attention_head& h, int key) const {
    tile::template load<Keys>(t, v, pair, v.c.k, h, key, v.keys);
    tile::template load<Keys>(t, v, pair + Keys * D, v.c.v, h, key, v.keys);
  }
};

}  // namespace cfp::cuda
